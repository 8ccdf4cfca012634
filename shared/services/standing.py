"""Whether what a delayed automation waits with still stands, by the rows of now (docs/delayed.md, "Firing").

The sweep asks it before it makes a run, the run's own gate right before its first action. Subjects and
messages are read unlocked: what is written a moment later is for the gate, and after it for nobody.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.automations import AutomationRow, find_automations
from shared.db.messages import MessageKey, find_messages
from shared.db.subjects import SubjectKey, find_subjects
from shared.db.talk_facts import TalkAsk, read_talk
from shared.errors import DefinitionError
from shared.model.events import Event, event_from_json
from shared.model.messages import Message, message_payload
from shared.model.pending import Anchor, PendingRow, PendingSkip
from shared.model.stamps import Stamp
from shared.model.statuses import AutomationStatus
from shared.model.subjects import SubjectRow
from shared.rules.arming import due_after
from shared.rules.conditions import LeafVerdict
from shared.rules.episodes import Standing, compile_standing
from shared.rules.talk import Talk, message_episode, resolved_at

KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Rule:
    """An automation as it is now. `standing` is None where its conditions cannot be read any more."""

    row: AutomationRow
    standing: Standing | None

    @property
    def is_readable(self) -> bool:
        """Tell whether a run can be made for it; of anything else that is wrong the run will tell."""
        definition: object = self.row.definition
        trigger = definition.get("trigger") if isinstance(definition, Mapping) else None
        return isinstance(trigger, Mapping) and isinstance(trigger.get("type"), str)

    @property
    def is_active(self) -> bool:
        """Tell whether what waits for it may fire."""
        return self.row.status is AutomationStatus.ACTIVE and self.row.deleted_at is None

    def due_at(self, started_at: datetime) -> datetime | None:
        """Say when an episode that begins now would come due; None where the automation no longer waits."""
        delay, active = self.row.definition.get("execution_delay"), self.row.activated_ms
        if not isinstance(delay, int) or active is None:
            return None
        return due_after(started_at, delay, active)


class Rules:
    """The conditions of delayed automations, compiled once for each version. Threads may share it."""

    def __init__(self, kept: int = KEPT) -> None:
        """Know none yet; remember `kept` at most."""
        self._kept_most = kept
        self._kept: dict[tuple[str, int], Standing | None] = {}
        self._lock = threading.Lock()

    def current(self, conn: Connection, automation_ids: Iterable[str]) -> dict[str, Rule]:
        """Give automations by id as they stand in this transaction; what was erased is left out."""
        rows = find_automations(conn, sorted(set(automation_ids)))
        return {row.id: Rule(row, self._standing(row)) for row in rows.values()}

    def _standing(self, row: AutomationRow) -> Standing | None:
        key = (row.id, row.version)
        with self._lock:
            if key not in self._kept:
                if len(self._kept) >= self._kept_most:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[key] = _compiled(row)
            return self._kept[key]


def _compiled(row: AutomationRow) -> Standing | None:
    definition: object = row.definition
    if not isinstance(definition, Mapping):
        return None
    try:
        return compile_standing(definition.get("conditions"))
    except DefinitionError:
        return None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is stored now about what rows wait for: subjects, the messages they hang on, the talk around."""

    subjects: Mapping[SubjectKey, SubjectRow]
    messages: Mapping[MessageKey, Message]
    talks: Mapping[TalkAsk, Talk]

    def newest(self, row: PendingRow) -> Stamp:
        """Give the stamp of the newest write of a row's subject, which must be there."""
        return self.subjects[_subject_key(row)].newest


@dataclass(frozen=True, slots=True)
class Lapsed:
    """Why a row does not stand any more. `began` is where another episode began that goes on now."""

    reason: PendingSkip
    blamed: tuple[LeafVerdict, ...] = ()
    began: Stamp | None = None


def read_facts(conn: Connection, rows: Sequence[PendingRow]) -> Facts:
    """Read what decides about rows: a few statements, however many they are."""
    subjects = find_subjects(conn, map(_subject_key, rows))
    messages = find_messages(conn, filter(None, map(_message_key, rows)))
    asks = [_ask(message, subjects) for message in messages.values()]
    return Facts(subjects, messages, read_talk(conn, [ask for ask in asks if ask is not None]))


def lapse_of(row: PendingRow, rule: Rule, facts: Facts, now: datetime) -> Lapsed | None:
    """Say why a row does not stand any more, in the order of the page; None where it does.

    Nothing is said of conditions that cannot be read: the run will say what is wrong with its automation.
    """
    subject = facts.subjects.get(_subject_key(row))
    if subject is None or subject.deleted is not None:
        return Lapsed(PendingSkip.SUBJECT_GONE)
    if rule.standing is None:
        return None
    event = event_from_json(row.trigger_event)
    if row.episode.anchor is Anchor.STATE:
        return _state_lapse(row, rule.standing, _Now(event, subject, now))
    return _message_lapse(row, rule.standing, facts, _Now(event, subject, now))


@dataclass(frozen=True, slots=True)
class _Now:
    event: Event
    subject: SubjectRow
    at: datetime

    def blamed(self, standing: Standing, message: Mapping[str, object] | None) -> tuple[LeafVerdict, ...]:
        return tuple(standing.blame(self.event, self.subject, message, self.at))


def _state_lapse(row: PendingRow, standing: Standing, now: _Now) -> Lapsed | None:
    """Ask whether the conditions have held all along: since the row's start, or since before it."""
    start = standing.start(now.event, now.subject, now.at)
    if start is None:
        return Lapsed(PendingSkip.CONDITIONS_CHANGED, now.blamed(standing, None))
    known = row.episode.anchor_stamp
    is_newer = start.stamp > known and not start.is_that_of(known)
    if is_newer and standing.reads_subject(row.subject_type):
        return Lapsed(PendingSkip.EPISODE_MOVED, began=start.stamp)
    return None


def _message_lapse(row: PendingRow, standing: Standing, facts: Facts, now: _Now) -> Lapsed | None:
    """Ask whether its message still hangs on the same episode, and whether the conditions hold."""
    key = _message_key(row)
    message = None if key is None else facts.messages.get(key)
    ask = None if message is None else _ask(message, facts.subjects)
    if message is None or ask is None:
        return Lapsed(PendingSkip.EPISODE_MOVED)
    episode = message_episode(message, facts.talks[ask])
    if episode is None or episode.key != row.episode.key:
        return Lapsed(PendingSkip.EPISODE_MOVED)
    payload = message_payload(message)
    if standing.holds(now.event, now.subject, payload, now.at):
        return None
    return Lapsed(PendingSkip.CONDITIONS_CHANGED, now.blamed(standing, payload))


def _subject_key(row: PendingRow) -> SubjectKey:
    return row.workspace_id, row.subject_type, row.subject_id


def _message_key(row: PendingRow) -> MessageKey | None:
    return None if row.episode.message_id is None else (row.workspace_id, row.episode.message_id)


def _ask(message: Message, subjects: Mapping[SubjectKey, SubjectRow]) -> TalkAsk | None:
    """Ask for the talk around a message; None where nothing is known of its conversation."""
    subject = subjects.get((message.workspace_id, "conversation", message.conversation_id))
    if subject is None:
        return None
    return TalkAsk(message.workspace_id, message.conversation_id, message.stamp, resolved_at(subject))
