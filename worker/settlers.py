"""What the engine of a worker is handed to settle rows that waited with, one settler a source of runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from pipeline.parts import Parts
from pipeline.settling import AlreadySaid, Settled, StandDown
from shared.db.engine import Database
from shared.db.pending_due import Correction, correct_executed, find_executions
from shared.model.moves import SkipReason
from shared.model.pending import STOOD_DOWN, PendingSkip, pending_id_of
from shared.model.runs import ClaimedRun, Outcome, RunSource, Succeeded
from shared.rules.blaming import shown_leaves
from shared.services.standing import Lapsed, Rules, lapse_of, read_facts
from shared.time.clock import Clock
from worker.settlers_idle import IdleSettler


class DelayedSettler:
    """Repeats what the sweep has checked, right before a delayed run acts (docs/delayed.md, "Firing")."""

    def __init__(self, database: Database, clock: Clock) -> None:
        """Know no conditions yet."""
        self._database = database
        self._clock = clock
        self._rules = Rules()

    def stand_downs(self, runs: Sequence[ClaimedRun]) -> Mapping[str, StandDown]:
        """Look at rows, subjects and messages as they are now; give, by run id, those that are not to act.

        Where a row or its automation is gone, nothing can tell that its episode goes on.
        """
        now = self._clock.now()
        with self._database.read() as conn:
            rows = find_executions(conn, (pending_id_of(run.source_id) for run in runs))
            rules = self._rules.current(conn, (run.automation_id for run in runs if run.automation_id))
            facts = read_facts(conn, list(rows.values()))
        found: dict[str, StandDown] = {}
        for run in runs:
            lapsed: Lapsed | None = Lapsed(PendingSkip.EPISODE_MOVED)
            row, rule = rows.get(pending_id_of(run.source_id)), rules.get(run.automation_id or "")
            if row is not None and rule is not None:
                lapsed = lapse_of(row, rule, facts, now)
            if lapsed is not None:
                found[run.claim.run_id] = _stand_down(lapsed)
        return found

    def bars(self, conn: Connection, runs: Sequence[ClaimedRun]) -> Mapping[str, StandDown | AlreadySaid]:
        """Bar nothing: what its gate has let through acts."""
        return {}

    def settle(self, conn: Connection, ended: Sequence[Settled], now: datetime) -> Counter[str]:
        """Have the rows say why their runs did not act, and end with them."""
        skips = [(each.run, reason) for each in ended if (reason := _skip_of(each.outcome))]
        corrections = [
            Correction(pending_id_of(run.source_id), run.claim.run_id, STOOD_DOWN[reason])
            for run, reason in skips
            if reason in STOOD_DOWN
        ]
        if corrections:
            correct_executed(conn, corrections, now=now)
        return Counter()

    def tell(self, ended: Sequence[Settled]) -> None:
        """Tell nothing beside what the runs' own logs say."""


def with_settlers(parts: Parts) -> Parts:
    """Give the parts of an engine that settles what waited with."""
    return replace(
        parts,
        settlers={
            RunSource.DELAYED: DelayedSettler(parts.database, parts.clock),
            RunSource.IDLE_STEP: IdleSettler(parts.database, parts.keys),
        },
    )


def _skip_of(outcome: Outcome) -> SkipReason | None:
    return outcome.skipped if isinstance(outcome, Succeeded) else None


def _stand_down(lapsed: Lapsed) -> StandDown:
    why = shown_leaves(lapsed.blamed) if lapsed.blamed else None
    return StandDown(SkipReason(lapsed.reason.value), why)
