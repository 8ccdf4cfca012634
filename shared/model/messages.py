"""Messages of conversations: what an event tells of one, and what it says of its sender. Pure.

Mail systems lose every trace of who caused what, so an answer to an automatic answer can only be noticed by
how the message itself is marked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from shared.ids import ID_LENGTH
from shared.model.event_fields import MAX_ID, format_instant, parse_instant
from shared.model.events import Event, id_text
from shared.model.stamps import Stamp
from shared.model.subjects import subject_of
from shared.rules.plain_text import as_text
from shared.time.clock import from_epoch_ms

MESSAGE_CREATED: Final = "message.created"
SKEW: Final = timedelta(minutes=5)  # by how much the clocks of publishers may be ahead

_BULK: Final = frozenset({"auto_reply", "bulk", "junk", "list"})
_HUMAN: Final = frozenset({"", "no"})
_EMPTY_PATHS: Final = frozenset({"", "<>"})
_MACHINES: Final = frozenset({"automation", "bot"})


class Direction(StrEnum):
    """Whether a message came from the contact or went to them."""

    INCOMING = "incoming"
    OUTGOING = "outgoing"


class SenderType(StrEnum):
    """Who wrote a message."""

    CONTACT = "contact"
    AGENT = "agent"
    BOT = "bot"
    AUTOMATION = "automation"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation. `stamp` orders it among the others, as the stream did.

    `auto_submitted`: it says itself that no person wrote it, see `is_machine_made`. `run_id` is the run that
    wrote it, if one did; `parameters` tell more of why.
    """

    workspace_id: str
    id: str
    conversation_id: str
    direction: Direction
    sender_type: SenderType
    sender_id: str | None
    agent_id: str | None
    content: str
    private: bool
    auto_submitted: bool
    stamp: Stamp
    run_id: str | None
    created_at: datetime
    parameters: Mapping[str, Any] | None = None


def message_of(event: Event) -> Message | None:
    """Read the message that an event tells of; None for other events, and where nothing is said of it.

    A message without an id has the event's key for one. What names neither direction nor sender is taken for
    the contact's own, so that nobody is written to as if they were silent.
    """
    told = event.payload.get("message")
    conversation = subject_of(event)
    if event.type != MESSAGE_CREATED or conversation is None or not isinstance(told, Mapping):
        return None
    direction = _direction(told)
    run_id = event.context.run_id if event.context else None
    return Message(
        workspace_id=event.workspace_id,
        id=_short_id(told.get("id")) or event.key,
        conversation_id=conversation.id,
        direction=direction,
        sender_type=_sender_type(told, direction),
        sender_id=_short_id(told.get("senderId")),
        agent_id=_short_id(told.get("agentId")),
        content=as_text(told.get("content")),
        private=told.get("private") is True,
        auto_submitted=is_machine_made(event) or _is_submitted(told.get("autoSubmitted")),
        stamp=event.write_stamp,
        run_id=run_id if run_id is not None and len(run_id) <= ID_LENGTH else None,
        created_at=_created_at(told.get("createdAt"), event),
    )


def message_payload(message: Message) -> dict[str, Any]:
    """Tell of a message in the payload conventions of `message.created`."""
    told = {
        "id": message.id,
        "direction": message.direction.value,
        "senderType": message.sender_type.value,
        "senderId": message.sender_id,
        "agentId": message.agent_id,
        "content": message.content,
        "private": message.private,
        "autoSubmitted": message.auto_submitted,
        "createdAt": format_instant(message.created_at),
    }
    return told if message.parameters is None else {**told, "parameters": message.parameters}


def is_machine_made(event: Event) -> bool:
    """Tell whether the event is an incoming message that no person wrote. It is no reply, and starts nothing.

    It says so itself by `autoSubmitted` (anything but false, empty or `no`), `precedence` (bulk, list, junk,
    auto_reply), an empty `returnPath`, `ownAddress: true`, or the `senderType` of a machine.
    """
    message = event.payload.get("message")
    if event.type != MESSAGE_CREATED or not isinstance(message, Mapping):
        return False
    return message.get("direction") == Direction.INCOMING and _is_marked(message)


def _is_marked(message: Mapping[str, Any]) -> bool:
    return (
        _is_submitted(message.get("autoSubmitted"))
        or _word(message.get("precedence")) in _BULK
        or _word(message.get("returnPath")) in _EMPTY_PATHS
        or message.get("ownAddress") is True
        or _word(message.get("senderType")) in _MACHINES
    )


def _is_submitted(mark: object) -> bool:
    word = _word(mark)
    return bool(mark) if word is None else word not in _HUMAN


def _direction(message: Mapping[str, Any]) -> Direction:
    told, sender = message.get("direction"), message.get("senderType")
    if told in list(Direction):
        return Direction(told)
    is_ours = sender in [SenderType.AGENT, SenderType.BOT, SenderType.AUTOMATION]
    return Direction.OUTGOING if is_ours else Direction.INCOMING


def _sender_type(message: Mapping[str, Any], direction: Direction) -> SenderType:
    told = message.get("senderType")
    if told in list(SenderType):
        return SenderType(told)
    return SenderType.CONTACT if direction is Direction.INCOMING else SenderType.AGENT


def _short_id(value: object) -> str | None:
    found = id_text(value)
    return found if found is not None and len(found) <= MAX_ID else None


def _created_at(value: object, event: Event) -> datetime:
    """Read when a message was written; one from the future would wait for ever, and has just been written."""
    entered_at = from_epoch_ms(event.stamp[0])
    told = _told_at(value) or event.occurred_at
    return told if told <= entered_at + SKEW else entered_at


def _told_at(value: object) -> datetime | None:
    try:
        return parse_instant(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _word(value: object) -> str | None:
    return value.strip().lower() if isinstance(value, str) else None
