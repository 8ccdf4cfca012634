"""ASSIGN, SET_STATUS, SNOOZE and RESOLVE: fields of a conversation.

As with UPDATE_RECORD, a field that somebody else changed after the event is left alone and listed as `stale`.
"""

from datetime import timedelta
from types import MappingProxyType
from typing import Final

from executors.contract import ActionResult, RunContext
from executors.conversation import change, conversation_of, reference, said_before
from shared.errors import FatalError
from shared.model.actions import Assign, Resolve, SetStatus, Snooze
from shared.model.conversation_configs import ConversationStatus
from shared.model.effects import UpdateSubject
from shared.model.event_fields import format_instant
from shared.model.subject_events import update_event

SNOOZE_IN_THE_PAST: Final = "SNOOZE_IN_THE_PAST"
FIELD_OF: Final = MappingProxyType({"assignee_id": "assigneeId", "team_id": "teamId"})


def assign(config: Assign, run: RunContext) -> ActionResult:
    """Ask for the new agent or team, or for none where null was given; a message goes before."""
    found = conversation_of(config, run)
    fields = {FIELD_OF[key]: getattr(config, key) for key in FIELD_OF if key in config.model_fields_set}
    return ActionResult(reference(found), (*said_before(found, config.message), change(found, fields)))


def set_status(config: SetStatus, run: RunContext) -> ActionResult:
    """Ask for the status; what becomes open or resolved is told of by an event of that name."""
    found = conversation_of(config, run)
    status = ConversationStatus(config.status)
    return ActionResult(reference(found), (_status(found, status),))


def snooze(config: Snooze, run: RunContext) -> ActionResult:
    """Ask for rest until an instant; minutes count from this attempt.

    Raises FatalError SNOOZE_IN_THE_PAST for an instant that is over: nobody would wake the conversation.
    """
    found = conversation_of(config, run)
    ends_at = config.ends_at or run.now + timedelta(minutes=config.minutes or 0)
    if ends_at <= run.now:
        raise FatalError(SNOOZE_IN_THE_PAST, f"until: {format_instant(ends_at)} is over")
    fields = {"status": ConversationStatus.SNOOZED.value, "snoozedUntil": format_instant(ends_at)}
    return ActionResult(reference(found) | {"snoozedUntil": fields["snoozedUntil"]}, (change(found, fields),))


def resolve(config: Resolve, run: RunContext) -> ActionResult:
    """Ask for the conversation to be resolved; a message goes before."""
    found = conversation_of(config, run)
    effects = (*said_before(found, config.message), _status(found, ConversationStatus.RESOLVED))
    return ActionResult(reference(found), effects)


def _status(conversation_id: str, status: ConversationStatus) -> UpdateSubject:
    fields = {"status": status.value}
    return change(conversation_id, fields, update_event("conversation", fields))
