"""Delayed automations begin to wait, wait for something newer, or no longer wait (docs/delayed.md).

The events are gone through as if each came alone: the first of each subject, the second of each, and so on;
each of these waves is a few set statements. So it does not matter how the stream is cut into sets, nor, since
each decision follows from all that is known, in which order the events come. A repeat changes nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection

from matcher.asking import state_deeds, talk_deeds
from matcher.concerns import Concern, Projected, in_waves, look_at, messages_of
from matcher.ledger import Ledger
from matcher.performing import Armed, perform
from shared.db.messages import MessageKey, find_messages, insert_messages
from shared.db.pending import lock_about
from shared.model.messages import Message
from shared.model.subjects import SubjectRow


@dataclass(slots=True)
class Looking:
    """The concerns of a set by the place of their change, and how their subjects looked right after it."""

    concerns: Mapping[int, Concern]
    now: datetime
    projected: list[Projected] = field(default_factory=list)

    def look(self, at: int, row: SubjectRow) -> SubjectRow:
        """Look at a subject right after the change at a place; give it with what it is to remember."""
        concern = self.concerns.get(at)
        if concern is None:
            return row
        seen = look_at(concern, row, self.now)
        self.projected.append(seen)
        return seen.row

    def waves(self) -> list[list[Projected]]:
        """Give what was looked at in waves."""
        return in_waves(self.projected)


def arm(
    conn: Connection, waves: Sequence[Sequence[Projected]], new: Collection[MessageKey], now: datetime
) -> Armed:
    """Go through the waves and write what they mean. `new` are the messages that are there only since now.

    The subjects are locked and written. The messages of later waves are written here, each before it counts.
    """
    armed = Armed()
    ledger = Ledger(lock_about(conn, {each.concern.key for wave in waves for each in wave}))
    for number, wave in enumerate(waves):
        if number > 0:
            new = insert_messages(conn, messages_of([wave]))
        known = _without_repeats(conn, wave, new)
        deeds = [*state_deeds(conn, known, ledger, now), *talk_deeds(conn, known, ledger, now)]
        if deeds:
            armed.add(perform(conn, deeds, ledger, now))
    return armed


def _without_repeats(
    conn: Connection, wave: Sequence[Projected], new: Collection[MessageKey]
) -> list[Projected]:
    """Take the message away from events that tell of one again, under its id but at another time."""
    doubted = [key for message in messages_of([wave]) if (key := _key(message)) not in new]
    stored = find_messages(conn, doubted)
    return [_checked(each, stored) for each in wave]


def _checked(each: Projected, stored: dict[MessageKey, Message]) -> Projected:
    message = each.concern.message
    if message is None or stored.get(_key(message), message).stamp == message.stamp:
        return each
    return replace(each, concern=replace(each.concern, message=None), named=frozenset())


def _key(message: Message) -> MessageKey:
    return message.workspace_id, message.id
