"""Why an event started an automation or not (docs/automations.md, "Why did it not run?"). It only reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection

from shared.db.automations import AutomationRow, automations_after
from shared.db.event_runs import find_event_runs
from shared.db.pending_reads import PendingSummary, find_pending_of_subject
from shared.db.subjects import find_subject
from shared.model.delays import delay_of
from shared.model.events import Event
from shared.model.runs import source_id_of
from shared.model.subjects import SubjectRow, subject_of
from shared.rules.examining import Known
from shared.services.backends import Backends
from shared.services.recorded import SeenEntry, see_entry
from shared.services.references import check_workspace, find_ever_automation
from shared.services.verdicts import Explained, explain, explain_waiting
from shared.settings import Settings
from shared.time.clock import epoch_ms, from_epoch_ms

LAST_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which automations: one by key or id, also a deleted one; else those there are, by key after `after`."""

    reference: str | None = None
    after: str = ""
    most: int = 200


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of an entry, and of each automation that was asked about."""

    entry: SeenEntry
    automations: Sequence[Explained] = ()


def explain_entry(
    backends: Backends, settings: Settings, workspace_id: str, entry_id: str, wanted: Wanted
) -> Explanation:
    """Say for each automation that was asked about what became of an entry, and which check said no.

    Where there is no run, the automation as it is now is held against the event, as of the entry's time.
    Raises NotFound.
    """
    entry = see_entry(backends, workspace_id, entry_id)
    with backends.database.read() as conn:
        check_workspace(conn, workspace_id)
        rows = _automations(conn, workspace_id, wanted)
        if entry.event is None:
            return Explanation(entry)
        sources = {row.id: source_id_of(row.id, entry.event.key) for row in rows}
        runs = find_event_runs(conn, sources.values())
        kept, subject = _kept(conn, entry.event, rows)
    known = replace(known_of(backends, settings, entry.event.stamp[0]), subject=subject)
    return Explanation(
        entry,
        [
            explain_waiting(row, entry.event, entry.state, known, kept.get(row.id, ()))
            if sources[row.id] not in runs and delay_of(row.definition) is not None
            else explain(row, entry.event, entry.state, known, runs.get(sources[row.id]))
            for row in rows
        ],
    )


def known_of(backends: Backends, settings: Settings, at_ms: int) -> Known:
    """Give what has to be known of this deployment, with conditions decided as of a moment."""
    oldest = backends.clock.now() - timedelta(days=settings.retention_days) + LAST_DAY
    return Known(from_epoch_ms(at_ms), settings.automation_max_depth, epoch_ms(oldest))


def _kept(
    conn: Connection, event: Event, rows: Sequence[AutomationRow]
) -> tuple[Mapping[str, Sequence[PendingSummary]], SubjectRow | None]:
    """Read what those that wait keep of the event's subject, and the subject as it is now."""
    waiting = [row.id for row in rows if delay_of(row.definition) is not None]
    ref = subject_of(event) if waiting else None
    if ref is None:
        return {}, None
    kept = find_pending_of_subject(conn, event.workspace_id, ref, waiting)
    return kept, find_subject(conn, event.workspace_id, ref.type, ref.id)


def _automations(conn: Connection, workspace_id: str, wanted: Wanted) -> list[AutomationRow]:
    if wanted.reference is not None:
        return [find_ever_automation(conn, workspace_id, wanted.reference)]
    return automations_after(conn, workspace_id, wanted.after, most=wanted.most)
