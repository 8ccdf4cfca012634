"""Which type of subject a trigger's events are about, as far as the trigger tells (docs/delayed.md). Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from shared.model.triggers import WILDCARD, Trigger, TriggerType

_ABOUT: Final[Mapping[TriggerType, str]] = MappingProxyType(
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
        TriggerType.CONTACT_UPDATED: "contact",
    }
)
_MESSAGE: Final = "message"
_FORM: Final = "form"


def state_subject_type(trigger: Trigger) -> str | None:
    """Name the type of the subjects whose state the trigger watches; None for messages, or if it names none.

    Of an event type, or the beginning of one, it is the noun: `order.placed` is about an `order`.
    """
    if trigger.type is not TriggerType.EVENT:
        return _ABOUT.get(trigger.type)
    noun, dot, _ = (trigger.config.event_type or "").partition(".")
    if not dot or WILDCARD in noun or noun == _MESSAGE:
        return None
    return "record" if noun == _FORM else noun
