"""ASSIGN, SET_STATUS, SNOOZE and RESOLVE: fields of a conversation.

As with UPDATE_RECORD, a field that somebody else changed after the event is left alone and listed as `stale`.
"""

from datetime import timedelta
from types import MappingProxyType
from typing import Final

from executors.contract import ActionResult, RunContext
from executors.conversation import CONVERSATION, change, conversation_of, reference, said_before
from shared.errors import FatalError
from shared.model.actions import Assign, Resolve, SetStatus, Snooze
from shared.model.conversation_configs import ConversationStatus, RequestAssignment
from shared.model.effects import Emit, UpdateSubject
from shared.model.event_fields import format_instant
from shared.model.subject_events import update_event

SNOOZE_IN_THE_PAST: Final = "SNOOZE_IN_THE_PAST"
ASSIGNMENT_REQUESTED: Final = "conversation.assignment_requested"
CLOSED_REASON: Final = "closedReason"
FIELD_OF: Final = MappingProxyType({"assignee_id": "assigneeId", "team_id": "teamId"})


def assign(config: Assign, run: RunContext) -> ActionResult:
    """Ask for the new agent or team, or for none where null was given; a message goes before."""
    found = conversation_of(config, run)
    if isinstance(config, RequestAssignment):
        return ActionResult(reference(found), (*said_before(found, config.message), _request(found, run)))
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
    status = _status(found, ConversationStatus.RESOLVED, config.closed_reason)
    return ActionResult(reference(found), (*said_before(found, config.message), status))


def _request(conversation_id: str, run: RunContext) -> Emit:
    told = run.event.get(CONVERSATION)
    conversation = {**told, "id": conversation_id} if isinstance(told, dict) else {"id": conversation_id}
    return Emit(ASSIGNMENT_REQUESTED, {CONVERSATION: conversation, "assignment": {"type": "auto"}})


def _status(
    conversation_id: str, status: ConversationStatus, closed_reason: str | None = None
) -> UpdateSubject:
    fields = {"status": status.value}
    if closed_reason is not None:
        fields[CLOSED_REASON] = closed_reason
    return change(conversation_id, fields, update_event("conversation", fields))
