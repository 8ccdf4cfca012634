"""Why an event arms nothing of an automation that waits, although it feeds it (docs/delayed.md). Pure."""

from typing import Any, Final

from shared.model.automation import Automation
from shared.model.delays import show_delay
from shared.model.events import Event
from shared.model.messages import MESSAGE_CREATED, Direction, Message, message_of
from shared.model.subjects import SubjectRow, subject_of
from shared.rules.episodes import Standing
from shared.rules.talk import Talk, is_from_machine, message_episode
from shared.rules.triggering import covers

SUBJECT: Final = "a subject"
BEGINS: Final = "a message that begins something"
DELETED: Final = "DELETED"
NO_SUBJECT: Final = (
    "the event is about no subject that could be looked at later; an id has at most 200 characters"
)

Answer = tuple[Any, Any, str]


def delay_said(
    event: Event,
    automation: Automation,
    standing: Standing,
    subject: SubjectRow | None,
    talk: Talk | None,
) -> Answer:
    """Give what is wanted, what was found, and why the event arms nothing; no reason where it may.

    `talk` is how the conversation stands around the event's message, where that is known.
    """
    minutes = automation.definition.execution_delay
    if minutes is None:
        return None, None, ""
    if subject_of(event) is None:
        return SUBJECT, None, NO_SUBJECT
    if subject is not None and subject.deleted is not None:
        return SUBJECT, DELETED, "the subject was deleted"
    message = message_of(event) if covers(automation.definition.trigger, MESSAGE_CREATED) else None
    said = None if message is None else _begins_nothing(message, standing, talk)
    if said is not None:
        return BEGINS, *said
    return SUBJECT, f"waits {show_delay(minutes)}, then looks again", ""


def _begins_nothing(message: Message, standing: Standing, talk: Talk | None) -> tuple[str, str] | None:
    """Say what a message is that begins no episode, and why it does not; None for one that does."""
    if is_from_machine(message):
        return "a machine's", "what an automation or another machine wrote begins nothing"
    if not standing.hears(message):
        return "a note", "a private note begins nothing, unless the conditions read message.private"
    if talk is None or message_episode(message, talk) is not None:
        return None
    if message.direction is Direction.INCOMING:
        return "answered", "the conversation was answered or resolved since"
    return "replied to", "the contact has written since"
