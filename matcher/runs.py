"""The run that a match starts. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from matcher.match import Match
from shared.ids import ID_LENGTH, new_id
from shared.model.events import Event, event_to_json
from shared.model.runs import NewRun, QueueKind, RunSource, source_id_of
from shared.model.sizes import split_for_show
from shared.model.subjects import SubjectRef, subject_of


@dataclass(frozen=True, slots=True)
class Rendition:
    """What all runs of one event have in common. `whole` is the event when `shown` had to be cut."""

    key: str
    hash: str
    shown: Mapping[str, Any]
    whole: Mapping[str, Any] | None
    subject: SubjectRef | None


def render(event: Event) -> Rendition:
    """Write an event as its runs keep it."""
    shown, whole = split_for_show(event_to_json(event))
    return Rendition(event.key, event.hash, shown, whole, subject_of(event))


def make_run(found: Match, event: Rendition, queue: QueueKind, at: datetime) -> NewRun:
    """Make the run of a match. A second one of the same event and automation has the same `source_id`."""
    run_id = new_id()
    automation, context = found.automation, found.event.context
    return NewRun(
        id=run_id,
        workspace_id=automation.workspace_id,
        automation_id=automation.id,
        automation_version=automation.version,
        source=RunSource.EVENT,
        source_id=source_id_of(automation.id, event.key),
        event_key=event.key,
        event_hash=event.hash,
        entry_id=found.event.entry_id,
        trigger_type=automation.definition.trigger.type,
        subject_type=event.subject.type if event.subject else None,
        subject_id=event.subject.id if event.subject else None,
        depth=found.event.depth,
        root_run_id=context.root_run_id if context and len(context.root_run_id) <= ID_LENGTH else run_id,
        input=event.shown,
        event=event.whole,
        queue=queue,
        created_at=at,
    )
