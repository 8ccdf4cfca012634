"""Steps of idle sequences begin to wait, or no longer do (docs/idle-sequences.md, "Arming").

It is decided by all that is known of a conversation once a set of events is written, never by the events one
by one: so neither the order in which they come nor how the stream is cut into sets matters to what waits. A
repeat changes nothing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.idle_facts import newest_counting, workspaces_with_holders
from shared.db.idle_steps import (
    ConversationKey,
    Settlement,
    insert_idle,
    lock_open_idle,
    revive_idle,
    settle_idle,
)
from shared.db.messages import MessageKey, find_messages
from shared.db.subjects import SubjectChange
from shared.model.idle_steps import IdleStepRow, IdleStop
from shared.model.messages import Message
from shared.model.subjects import SubjectDelete, SubjectRow
from shared.rules.idle_arming import INBOX, arming_rule, first_step, may_arm
from shared.rules.idle_rules import RuleAsk
from shared.rules.idling import end_since, status_of, talk_stop
from shared.services.idle_rules import read_rules
from shared.services.idling import CONVERSATION, find_conversations

_TELLING: Final = frozenset({"status", INBOX})


@dataclass(frozen=True, slots=True)
class Idled:
    """What became of steps: who began to wait, who no longer does and why; rules that cannot be read."""

    armed: Sequence[IdleStepRow] = ()
    stopped: Sequence[tuple[IdleStepRow, IdleStop]] = ()
    malformed: Mapping[RuleAsk, str] = field(default_factory=dict)


class Talks:
    """What of a set of events may matter to idle sequences.

    `late` are the conversations of which something came to be known that happened before what was known.
    """

    def __init__(self, changes: Sequence[SubjectChange], messages: Sequence[Message]) -> None:
        """Look at nothing yet."""
        self._changes = changes
        self._arming = [message for message in messages if may_arm(message)]
        self.late: set[ConversationKey] = set()

    @property
    def keys(self) -> set[ConversationKey]:
        """Every conversation that the events tell of."""
        return {(each.workspace_id, each.id) for each in self._changes if each.type == CONVERSATION}

    def look(self, at: int, row: SubjectRow) -> SubjectRow:
        """Look at a subject right after the change at a place; give it as it is."""
        change = self._changes[at]
        if row.type == CONVERSATION and row.newest > change.stamp and _tells(change):
            self.late.add((row.workspace_id, row.id))
        return row

    def fresh(self, conn: Connection) -> list[Message]:
        """Give the messages that may arm, where there may be rules, and that are not stored yet.

        To be asked before they are; the caller holds their conversations locked.
        """
        within = workspaces_with_holders(conn, (message.workspace_id for message in self._arming))
        asked = {(each.workspace_id, each.id): each for each in self._arming if each.workspace_id in within}
        stored = find_messages(conn, asked)
        return [message for key, message in asked.items() if key not in stored]


def keep_idle(conn: Connection, talks: Talks, fresh: Collection[Message], now: datetime) -> Idled:
    """End what no longer waits, and let begin what now does. The caller holds the conversations locked.

    A step that has a run is left to it.
    """
    waiting = [row for row in lock_open_idle(conn, talks.keys) if row.run_id is None]
    if not waiting and not fresh and not talks.late:
        return Idled()
    keys = {(row.workspace_id, row.conversation_id) for row in waiting} | talks.late
    keys |= {(message.workspace_id, message.conversation_id) for message in fresh}
    new_ids = {(message.workspace_id, message.id) for message in fresh}
    known = _Known(find_conversations(conn, keys), newest_counting(conn, keys), new_ids, talks.late)
    stopped = list(known.stops(waiting))
    endings = [Settlement(row.id, row.version, status_of(stop), stop) for row, stop in stopped]
    moved = settle_idle(conn, endings, now)
    armed, malformed = _begin(conn, known, now)
    return Idled(armed, [(row, stop) for row, stop in stopped if row.id in moved], malformed)


def _begin(conn: Connection, known: "_Known", now: datetime) -> tuple[list[IdleStepRow], dict[RuleAsk, str]]:
    """Let sequences begin; what was stopped too early waits again."""
    beginnings = list(known.beginnings())
    rules = read_rules(conn, (ask for _, ask in beginnings))
    begun = [(message, ask, plan) for message, ask in beginnings if (plan := rules[ask].plan) is not None]
    anchors = [(*known.key_of(message), message.id) for message, _, _ in begun if known.is_late(message)]
    revive_idle(conn, anchors, now)
    rows = [first_step(ask, plan, message, now) for message, ask, plan in begun]
    new = insert_idle(conn, rows)
    malformed = {ask: found.malformed for ask, found in rules.items() if found.malformed is not None}
    return [row for row in rows if row.id in new], malformed


@dataclass(frozen=True, slots=True)
class _Known:
    """What is stored of conversations now; which messages are there only since now, and what came late."""

    subjects: Mapping[ConversationKey, SubjectRow]
    newest: Mapping[ConversationKey, Message]
    fresh: Collection[MessageKey]
    late: Collection[ConversationKey]

    def stops(self, waiting: Sequence[IdleStepRow]) -> Iterator[tuple[IdleStepRow, IdleStop]]:
        """Say which steps that wait can fire no more."""
        for row in waiting:
            key = (row.workspace_id, row.conversation_id)
            stop = talk_stop(row, self.subjects.get(key), self.newest.get(key))
            if stop is not None:
                yield row, stop

    def beginnings(self) -> Iterator[tuple[Message, RuleAsk]]:
        """Give the messages from which a sequence may begin to wait now, each with whose rule it is."""
        for key, message in self.newest.items():
            subject = self.subjects.get(key)
            if subject is None or end_since(subject, message.stamp) is not None:
                continue
            ask = arming_rule(message, subject)
            if ask is not None and (self.is_late(message) or (key[0], message.id) in self.fresh):
                yield message, ask

    def is_late(self, message: Message) -> bool:
        """Tell whether something older came to be known of the message's conversation."""
        return self.key_of(message) in self.late

    def key_of(self, message: Message) -> ConversationKey:
        """Name a message's conversation."""
        return message.workspace_id, message.conversation_id


def _tells(change: SubjectChange) -> bool:
    return isinstance(change, SubjectDelete) or not _TELLING.isdisjoint(change.fields)
