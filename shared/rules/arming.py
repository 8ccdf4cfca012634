"""How a delayed automation begins to wait for a subject (docs/delayed.md). Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from shared.ids import new_id
from shared.model.automation import Automation
from shared.model.pending import Episode, PendingRow, PendingStatus
from shared.model.subjects import SubjectRef
from shared.model.triggers import WILDCARD, Trigger, TriggerType
from shared.time.clock import from_epoch_ms

SUBJECT_TYPES: Final[Mapping[TriggerType, str]] = MappingProxyType(
    {
        TriggerType.RECORD_CREATED: "record",
        TriggerType.RECORD_UPDATED: "record",
        TriggerType.PROPERTY_CHANGED: "record",
        TriggerType.FORM_SUBMITTED: "record",
        TriggerType.PAGE_CREATED: "page",
        TriggerType.CONVERSATION_CREATED: "conversation",
        TriggerType.CONVERSATION_UPDATED: "conversation",
        TriggerType.CONVERSATION_OPENED: "conversation",
        TriggerType.CONVERSATION_RESOLVED: "conversation",
        TriggerType.MESSAGE_CREATED: "conversation",
        TriggerType.CONTACT_UPDATED: "contact",
    }
)
_MESSAGE: Final = "message"
_FORM: Final = "form"


def subject_type_of(automation: Automation) -> str | None:
    """Name the type of the subjects that it waits for; None if it may be any, as for EVENT."""
    return SUBJECT_TYPES.get(automation.definition.trigger.type)


def state_type_of(trigger: Trigger) -> str | None:
    """Name the type of the subjects whose state a trigger watches; None for messages, or if it names none.

    Of an event type, or the beginning of one, it is the noun: `order.placed` is about an `order`.
    """
    if trigger.type is TriggerType.MESSAGE_CREATED:
        return None
    if trigger.type is not TriggerType.EVENT:
        return SUBJECT_TYPES.get(trigger.type)
    noun, dot, _ = (trigger.config.event_type or "").partition(".")
    if not dot or noun in (_MESSAGE, WILDCARD):
        return None
    return "record" if noun == _FORM else noun


def due_at(automation: Automation, started_at: datetime) -> datetime:
    """Say when an episode is due, as the automation is now."""
    return due_after(started_at, automation.definition.execution_delay or 0, automation.activated_ms)


def due_after(started_at: datetime, minutes: int, activated_ms: int | None) -> datetime:
    """Say when an episode is due: the delay after it began, but not before the automation was active."""
    due = started_at + timedelta(minutes=minutes)
    return due if activated_ms is None else max(due, from_epoch_ms(activated_ms))


def new_pending(
    automation: Automation,
    subject: SubjectRef,
    episode: Episode,
    trigger_event: Mapping[str, Any],
    now: datetime,
) -> PendingRow:
    """Make the row that an episode of a subject waits with; `trigger_event` is its event, whole."""
    return PendingRow(
        id=new_id(),
        workspace_id=automation.workspace_id,
        automation_id=automation.id,
        subject_type=subject.type,
        subject_id=subject.id,
        episode=episode,
        trigger_event=trigger_event,
        due_at=due_at(automation, episode.started_at),
        status=PendingStatus.PENDING,
        skip_reason=None,
        run_id=None,
        version=1,
        armed_at=now,
        claimed_at=None,
        ended_at=None,
        created_at=now,
        updated_at=now,
    )
