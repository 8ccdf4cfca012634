"""What an automation would do with an event (docs/automations.md, "Dry run"). It only reads.

No executor is known here: actions are rendered, never carried out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import orjson
from sqlalchemy import Connection

from shared.db.automations import AutomationRow
from shared.db.event_runs import find_event_runs
from shared.db.secrets import find_sealed
from shared.db.subjects import find_subject
from shared.errors import BadEvent, DefinitionError
from shared.model.automation import Automation
from shared.model.events import Event, decode_entry
from shared.model.runs import source_id_of
from shared.model.subjects import data, subject_of
from shared.rules.examining import Examination, Known, examine, unreadable
from shared.rules.previewing import PreviewedAction, Stage, asked_secrets, asks_for_subject, preview_actions
from shared.services.backends import Backends
from shared.services.recorded import masked_event
from shared.services.references import find_automation
from shared.services.trying_delay import Wait, known_after, would_wait
from shared.services.verdicts import automation_of, earlier_of
from shared.services.waking import redis_ms
from shared.services.why import known_of
from shared.settings import Settings

OBJECTS: Final = ("payload", "context")
FIELDS: Final = frozenset({"type", "workspaceId", "payload", "id", "occurredAt", "source", "context"})


@dataclass(frozen=True, slots=True)
class DryRun:
    """What every check says, and what each action would be handed; `waits`, if it would wait before."""

    automation: AutomationRow
    event: Event
    examination: Examination
    actions: Sequence[PreviewedAction]
    waits: Wait | None = None


class Sight(StrEnum):
    """Whether whoever asks may see what is known of subjects; templates find nothing of them else."""

    SUBJECTS = "subjects"
    NO_SUBJECTS = "no_subjects"


@dataclass(frozen=True, slots=True)
class Trial:
    """An automation, by key or id, and the event that it is tried with; a recorded one is seen masked."""

    reference: str
    event: Event
    sight: Sight = Sight.SUBJECTS
    is_recorded: bool = False


def dry_run(backends: Backends, settings: Settings, workspace_id: str, trial: Trial) -> DryRun:
    """Hold an automation, as it is now, against an event; its actions are rendered in any case.

    Raises NotFound without the automation.
    """
    event = masked_event(trial.event) if trial.is_recorded else trial.event
    known = known_of(backends, settings, event.stamp[0])
    with backends.database.read() as conn:
        row = find_automation(conn, workspace_id, trial.reference)
        try:
            automation = automation_of(row)
        except DefinitionError as error:
            return DryRun(row, event, unreadable(str(error)), ())
        known = _with_earlier(conn, automation, trial.event, known)
        stage = _stage(conn, automation, trial, known)
        known = known_after(conn, automation, event, known)
        seen = examine(event, automation, known)
        waits = would_wait(conn, automation, event, known) if seen.stopped_by is None else None
    acts = preview_actions(event, automation, stage)
    return DryRun(row, event, seen, acts, waits)


def trial_event(backends: Backends, workspace_id: str, given: Mapping[str, Any]) -> Event:
    """Make an event of the fields of an entry, as if it were published now. Raises BadEvent, Unavailable."""
    unknown = sorted(given.keys() - FIELDS)
    if unknown:
        raise BadEvent(unknown[0], f"is unknown; an event has {', '.join(sorted(FIELDS))}")
    named = given.get("workspaceId", workspace_id)
    if named != workspace_id:
        raise BadEvent("workspaceId", f"is not {workspace_id}, whose automation this is")
    fields = {**given, "workspaceId": workspace_id, "payload": given.get("payload", {})}
    written = {name.encode(): _written(name, value) for name, value in fields.items() if value is not None}
    return decode_entry(f"{redis_ms(backends)}-0", written)


def _written(name: str, value: object) -> bytes:
    if name in OBJECTS:
        if not isinstance(value, Mapping):
            raise BadEvent(name, "is not a JSON object")
        return orjson.dumps(value)
    if not isinstance(value, str):
        raise BadEvent(name, "must be a text")
    return value.encode(errors="replace")


def _with_earlier(conn: Connection, automation: Automation, event: Event, known: Known) -> Known:
    """Add the run that another entry of the same key started, if there is one."""
    source_id = source_id_of(automation.id, event.key)
    run = find_event_runs(conn, [source_id]).get(source_id)
    if run is None or run.entry_id == event.entry_id:
        return known
    return replace(known, earlier=earlier_of(run, event))


def _stage(conn: Connection, automation: Automation, trial: Trial, known: Known) -> Stage:
    """Read what the automation's templates ask for, but no secret's value."""
    is_seen = trial.sight is Sight.SUBJECTS and asks_for_subject(automation)
    ref = subject_of(trial.event) if is_seen else None
    row = None if ref is None else find_subject(conn, automation.workspace_id, ref.type, ref.id)
    subject = None if ref is None or row is None else {**data(row), "type": ref.type, "id": ref.id}
    names = asked_secrets(automation)
    there = find_sealed(conn, automation.workspace_id, names) if names else {}
    return Stage(known.at, subject, frozenset(there))
