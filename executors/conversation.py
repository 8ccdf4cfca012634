"""What the actions on conversations have in common: which conversation, and a message that goes before."""

from typing import Any, Final

from executors.contract import RunContext
from shared.errors import FatalError
from shared.model.conversation_configs import ConversationConfig
from shared.model.effects import Effect, Say, UpdateSubject
from shared.model.events import id_text

CONVERSATION: Final = "conversation"
NO_CONVERSATION: Final = "NO_CONVERSATION"
UPDATED: Final = "conversation.updated"


def conversation_of(config: ConversationConfig, run: RunContext) -> str:
    """Give the id of the conversation that an action is about: its own, else the event's.

    Raises FatalError NO_CONVERSATION if neither the action nor the event names one.
    """
    if config.conversation_id is not None:
        return config.conversation_id
    if run.subject is not None and run.subject.type == CONVERSATION:
        return run.subject.id
    told = run.event.get(CONVERSATION)
    found = id_text(told.get("id")) if isinstance(told, dict) else None
    if found is None:
        raise FatalError(NO_CONVERSATION, "the event is about no conversation; name one by conversation_id")
    return found


def change(conversation_id: str, fields: dict[str, Any], event_type: str = UPDATED) -> UpdateSubject:
    """Ask for a change of a conversation's fields, told of as `event_type`."""
    return UpdateSubject(CONVERSATION, conversation_id, fields, force=False, event_type=event_type)


def said_before(conversation_id: str, message: str | None) -> tuple[Effect, ...]:
    """Ask for a public message, if there is one; it stands before the change that follows it."""
    return () if message is None else (Say(conversation_id, message, private=False),)


def reference(conversation_id: str) -> dict[str, Any]:
    """Name the conversation in an action's output."""
    return {"conversationId": conversation_id}
