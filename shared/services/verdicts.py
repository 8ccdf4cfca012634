"""What became of an event and an automation (docs/automations.md, "Why did it not run?"). Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from shared.db.automations import AutomationRow
from shared.db.event_runs import EventRun
from shared.db.pending_reads import PendingSummary
from shared.errors import DefinitionError
from shared.event_stream import EntryState
from shared.model.automation import Automation, parse_definition
from shared.model.events import Event
from shared.model.moves import SkipReason
from shared.rules.examining import Check, CheckName, Earlier, Examination, Known, examine, unreadable

DECIDED_BY_RUN: Final = frozenset(
    {CheckName.SELF_TRIGGER, CheckName.DEPTH, CheckName.ACTIONS, CheckName.CONDITIONS}
)
SKIPPED_BY: Final[Mapping[str, CheckName]] = MappingProxyType(
    {
        SkipReason.INACTIVE: CheckName.STATUS,
        SkipReason.SELF_TRIGGER: CheckName.SELF_TRIGGER,
        SkipReason.DEPTH_LIMIT: CheckName.DEPTH,
        SkipReason.CONDITIONS: CheckName.CONDITIONS,
    }
)
CHANGED_SINCE: Final = "its run was skipped for this, and would not be now: the automation was changed"


class Verdict(StrEnum):
    """What became of an event and one automation.

    NO_RUN: by what is known now a run was made, but there is none: the automation was changed after the
    event, or the run has been deleted. WAITING: the matcher has not taken the event yet. ARMED: the
    automation waits before it acts, and what it waits with, or waited, is told.
    """

    MATCHED = "matched"
    ARMED = "armed"
    NOT_MATCHED = "not_matched"
    WAITING = "waiting"
    NO_RUN = "no_run"


@dataclass(frozen=True, slots=True)
class Explained:
    """One automation and the event. `run` is the run that the entry started, if there is one.

    `stopped_by` is the first check that said no; where there is a run, the check that it was skipped for.
    `pending` is what the entry armed, else what waits already for its subject.
    """

    automation: AutomationRow
    verdict: Verdict
    stopped_by: Check | None
    examination: Examination
    run: EventRun | None
    pending: tuple[PendingSummary, ...] = ()


def explain(
    row: AutomationRow, event: Event, state: EntryState, known: Known, found: EventRun | None
) -> Explained:
    """Say what became of an event and an automation; `found` is the run under the event's key."""
    if found is not None and found.entry_id == event.entry_id:
        at = found.started_at or known.at
        seen = judge(row, event, replace(known, at=at))
        return Explained(row, Verdict.MATCHED, _skip_of(found, seen), seen, found)
    earlier = None if found is None else earlier_of(found, event)
    seen = judge(row, event, replace(known, earlier=earlier))
    stopped = seen.stopped_by
    if stopped is not None and stopped.name not in DECIDED_BY_RUN:
        return Explained(row, Verdict.NOT_MATCHED, stopped, seen, None)
    is_taken = state is EntryState.TAKEN
    return Explained(row, Verdict.NO_RUN if is_taken else Verdict.WAITING, stopped, seen, None)


def explain_waiting(
    row: AutomationRow, event: Event, state: EntryState, known: Known, kept: Sequence[PendingSummary]
) -> Explained:
    """Say what became of an event and an automation that waits; `kept` is what it keeps of the subject."""
    seen = judge(row, event, known)
    armed = tuple(each for each in kept if each.armed_by == event.entry_id)
    if armed:
        return Explained(row, Verdict.ARMED, None, seen, None, armed)
    stopped = seen.stopped_by
    if stopped is not None:
        return Explained(row, Verdict.NOT_MATCHED, stopped, seen, None)
    held = tuple(each for each in kept if each.ended_at is None)
    if held:
        return Explained(row, Verdict.ARMED, None, seen, None, held)
    is_taken = state is EntryState.TAKEN
    return Explained(row, Verdict.NO_RUN if is_taken else Verdict.WAITING, None, seen, None)


def judge(row: AutomationRow, event: Event, known: Known) -> Examination:
    """Hold an automation as it is now against an event."""
    try:
        automation = automation_of(row)
    except DefinitionError as error:
        return unreadable(str(error))
    return examine(event, automation, replace(known, deleted_at=row.deleted_at))


def automation_of(row: AutomationRow) -> Automation:
    """Read a stored automation. Raises DefinitionError."""
    definition = parse_definition(row.definition).model_copy(update={"status": row.status})
    return Automation(row.id, row.workspace_id, row.version, definition, row.activated_ms, row.created_at)


def earlier_of(run: EventRun, event: Event) -> Earlier:
    """Tell of a run that another entry of the same key started."""
    return Earlier(run.id, run.entry_id, run.event_hash == event.hash)


def _skip_of(run: EventRun, seen: Examination) -> Check | None:
    """Give the check that a run was skipped for; None if it was not skipped."""
    name = SKIPPED_BY.get(run.skip_reason or "")
    if name is None:
        return None
    check = next((each for each in seen.checks if each.name is name), None)
    if check is None or check.passed:
        return Check(name, None, None, CHANGED_SINCE)
    return check
