"""What the messages of a conversation say around one of them, worked out the plain way from all of them."""

from collections.abc import Iterable

from shared.model.messages import Direction, Message, SenderType
from shared.model.stamps import Stamp
from shared.rules.talk import Talk


def is_reply(message: Message) -> bool:
    """Tell whether it is a public answer of an agent or a bot that no machine made."""
    is_ours = message.direction is Direction.OUTGOING and message.sender_type is not SenderType.AUTOMATION
    return is_ours and not message.private and not message.auto_submitted


def is_of_the_contact(message: Message) -> bool:
    """Tell whether a person wrote it to us, for all to see."""
    is_written = message.direction is Direction.INCOMING and message.sender_type is not SenderType.AUTOMATION
    return is_written and not message.private and not message.auto_submitted


def talk_around(messages: Iterable[Message], resolved: Stamp | None, anchor: Stamp) -> Talk:
    """Give the talk around the message of the stamp `anchor`; the order of `messages` does not matter."""
    known = sorted(messages, key=lambda message: message.stamp)
    told = [message for message in known if is_of_the_contact(message)]
    clears = [message.stamp for message in known if is_reply(message)]
    cleared = max([*clears, *([] if resolved is None else [resolved])], default=None)
    waiting = next((message for message in told if cleared is None or message.stamp > cleared), None)
    earlier = [message.id for message in told if message.stamp < anchor]
    return Talk(
        cleared=cleared,
        waiting_stamp=waiting.stamp if waiting else None,
        waiting_since=waiting.created_at if waiting else None,
        newest_incoming=told[-1].stamp if told else None,
        incoming_before=earlier[-1] if earlier else None,
    )
