"""What became of each match once the rows are written: new, known, a duplicate or a conflict. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from matcher.tally import Tally
from matcher.writing import Written
from shared.model.runs import ExistingRun, NewRun, QueueKind


@dataclass(slots=True)
class Settled:
    """`handles` are the new runs by queue; `again` those that this very entry made at an earlier delivery.

    `conflicts` are other events under a key that was taken; they are not run.
    """

    handles: defaultdict[QueueKind, list[str]] = field(default_factory=lambda: defaultdict(list))
    again: list[ExistingRun] = field(default_factory=list)
    conflicts: list[NewRun] = field(default_factory=list)


def settle(runs: Sequence[NewRun], written: Written, tally: Tally) -> Settled:
    """Sort the runs out and count them; each entry is counted with its acknowledgement, hence once."""
    settled = Settled()
    first: dict[str, NewRun] = {}
    for run in runs:
        if run.id in written.new:
            first[run.source_id] = run
            settled.handles[run.queue].append(run.id)
            tally.matched(run.trigger_type)
            continue
        before = written.before.get(run.source_id)
        known = before or first[run.source_id]
        if before is not None and before.entry_id == run.entry_id:
            settled.again.append(before)
            tally.matched(run.trigger_type)
        elif known.event_hash == run.event_hash:
            tally.skipped("deduped")
        else:
            settled.conflicts.append(run)
            tally.health("duplicate_conflict")
    return settled
