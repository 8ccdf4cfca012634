"""Runs that no event on the stream started: by hand, or by the clock. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from shared.model.event_fields import format_instant
from shared.model.events import Event, event_to_json
from shared.model.runs import NewRun, QueueKind, RunSource
from shared.model.sizes import split_for_show
from shared.model.subjects import subject_of
from shared.model.triggers import TriggerType
from shared.time.clock import epoch_ms

SCHEDULE_EVENT: Final = "schedule"


@dataclass(frozen=True, slots=True)
class Start:
    """What starts a run, of which version of which automation. There is one run of a source and its id."""

    automation_id: str
    version: int
    trigger_type: TriggerType
    source: RunSource
    source_id: str


def make_run(run_id: str, start: Start, event: Event, queue: QueueKind, now: datetime) -> NewRun:
    """Make a run that stands at the beginning of its chain, with `event` as what it is about."""
    shown, whole = split_for_show(event_to_json(event))
    subject = subject_of(event)
    return NewRun(
        id=run_id,
        workspace_id=event.workspace_id,
        automation_id=start.automation_id,
        automation_version=start.version,
        source=start.source,
        source_id=start.source_id,
        event_key=None,
        event_hash=None,
        entry_id=None,
        trigger_type=start.trigger_type,
        subject_type=subject.type if subject else None,
        subject_id=subject.id if subject else None,
        depth=0,
        root_run_id=run_id,
        input=shown,
        event=whole,
        queue=queue,
        created_at=now,
    )


def slot_id(automation_id: str, slot: datetime) -> str:
    """Name what makes the run of a slot the only one of its automation."""
    return f"{automation_id}:{format_instant(slot)}"


def schedule_event(workspace_id: str, cron: str, slot: datetime, now: datetime) -> Event:
    """Make the event of a slot. It is told `now`, and happened at the slot, which may be earlier."""
    payload: dict[str, Any] = {"firedAt": format_instant(slot), "cron": cron}
    return Event(
        entry_id=f"{epoch_ms(now)}-0",
        type=SCHEDULE_EVENT,
        workspace_id=workspace_id,
        payload=payload,
        id=None,
        occurred_at=slot,
        context=None,
        source=None,
        sanitized=False,
    )
