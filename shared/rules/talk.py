"""Who has answered in a conversation, and which episode a message of it hangs on (docs/delayed.md). Pure.

Both follow from what is known of the conversation's messages and of when it was resolved, in the order of
their stamps; so they do not depend on the order in which those came to be known.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from shared.model.conversation_configs import ConversationStatus
from shared.model.messages import Direction, Message, SenderType
from shared.model.pending import Anchor, Episode
from shared.model.stamps import Stamp
from shared.model.subjects import SubjectRow

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_STATUS: Final = "status"
_NOBODY: Final = "0"


@dataclass(frozen=True, slots=True)
class Talk:
    """What a conversation's messages say around one of them.

    `cleared`: the newest public reply of an agent or a bot, or the newest resolve. `waiting_stamp` and
    `waiting_since` are those of the contact's first public message after it. `newest_incoming` is that of the
    contact's newest message, `incoming_before` the id of the newest one before the message in question. No
    message that a machine made counts.
    """

    cleared: Stamp | None
    waiting_stamp: Stamp | None
    waiting_since: datetime | None
    newest_incoming: Stamp | None
    incoming_before: str | None


def is_from_machine(message: Message) -> bool:
    """Tell whether a message begins nothing, since no person or bot wrote it."""
    return message.auto_submitted or message.sender_type is SenderType.AUTOMATION


def message_episode(message: Message, talk: Talk) -> Episode | None:
    """Name the episode that a message hangs on; None if it hangs on none, or that is over."""
    if is_from_machine(message):
        return None
    if message.direction is Direction.INCOMING:
        return _awaiting_agent(message, talk)
    return _reply_chase(message, talk)


def resolved_at(subject: SubjectRow) -> Stamp | None:
    """Say when a conversation was resolved last, or an earlier one of its id deleted; None if never.

    To be told of a resolved one that it is resolved does not resolve it again.
    """
    statuses = ((None, None), *subject.fields.get(_STATUS, ()))
    turns = [
        stamp
        for (_, before), (stamp, status) in pairwise(statuses)
        if stamp is not None and status == ConversationStatus.RESOLVED != before
    ]
    return max(filter(None, (*turns[-1:], subject.born_after)), default=None)


def _awaiting_agent(message: Message, talk: Talk) -> Episode | None:
    if _is_before(message.stamp, talk.cleared) or _is_before(message.stamp, talk.waiting_stamp):
        return None
    since = talk.waiting_since or message.created_at
    key = f"{Anchor.AWAITING_AGENT}:{(since - _EPOCH) // _MICROSECOND}"
    return Episode(Anchor.AWAITING_AGENT, key, since, message.stamp, message.id)


def _reply_chase(message: Message, talk: Talk) -> Episode | None:
    if _is_before(message.stamp, talk.newest_incoming):
        return None
    key = f"{Anchor.REPLY_CHASE}:{talk.incoming_before or _NOBODY}"
    return Episode(Anchor.REPLY_CHASE, key, message.created_at, message.stamp, message.id)


def _is_before(stamp: Stamp, other: Stamp | None) -> bool:
    return other is not None and stamp < other
