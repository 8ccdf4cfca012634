"""Which events of a set concern delayed automations, and what they say of whom they name. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from matcher.choosing import Chosen
from matcher.delayed import Delayed
from matcher.index import Index
from shared.db.subjects import SubjectChange, SubjectKey
from shared.model.conversation_configs import ConversationStatus
from shared.model.events import Event
from shared.model.messages import Message, message_of
from shared.model.naming import note_named
from shared.model.subjects import SubjectDelete, SubjectRow
from shared.rules.episodes import Standing
from shared.rules.scopes import gate_scope

_STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class Concern:
    """An event about a subject that delayed automations may wait for, and the change that it makes there.

    `named` are those of them that its trigger names and that nothing else keeps from being armed. `message`
    is told where messages may name any of them.
    """

    event: Event
    change: SubjectChange
    delayed: tuple[Delayed, ...]
    named: frozenset[str]
    message: Message | None

    @property
    def key(self) -> SubjectKey:
        """The key of the subject."""
        return self.change.workspace_id, self.change.type, self.change.id

    @property
    def may_answer(self) -> bool:
        """Tell whether it may change who waits for whom."""
        if self.message is not None or isinstance(self.change, SubjectDelete):
            return True
        return _STATUS in self.change.fields


@dataclass(frozen=True, slots=True)
class Projected:
    """A concern with its subject right after the change; `named` are those whom the event did name."""

    concern: Concern
    row: SubjectRow
    named: frozenset[str]

    @property
    def is_late_resolve(self) -> bool:
        """Tell whether it says late that something was resolved, which then a later one did not do."""
        change = self.concern.change
        if isinstance(change, SubjectDelete) or change.fields.get(_STATUS) != ConversationStatus.RESOLVED:
            return False
        return any(stamp > change.stamp for stamp, _ in self.row.fields.get(_STATUS, ()))


def concern_of(event: Event, change: SubjectChange, index: Index, chosen: Chosen) -> Concern | None:
    """Say what an event means to delayed automations; None if nothing."""
    delayed = index.delayed_for(event)
    if not delayed:
        return None
    message = message_of(event) if any(each.hears_messages for each in delayed) else None
    named = chosen.named.get(event.entry_id, frozenset())
    return Concern(event, change, delayed, named, message)


def look_at(concern: Concern, row: SubjectRow, now: datetime) -> Projected:
    """Say whom the event names now that its change is made, and let the subject remember it.

    One that reads the event, or nothing of the subject, is armed by the event itself or not at all.
    """
    event = concern.event
    named = frozenset(
        each.id
        for each in concern.delayed
        if each.id in concern.named and _has_changed(event, row, each.standing, now)
    )
    lasting = frozenset() if concern.message else frozenset(_lasting(concern, named))
    return Projected(concern, note_named(row, event.key, lasting), named)


def in_waves(projected: Iterable[Projected]) -> list[list[Projected]]:
    """Split into waves: the first event of each subject, the second of each, and so on."""
    seen: Counter[SubjectKey] = Counter()
    waves: list[list[Projected]] = []
    for each in projected:
        at = seen[each.concern.key]
        seen[each.concern.key] += 1
        if at == len(waves):
            waves.append([])
        waves[at].append(each)
    return waves


def _has_changed(event: Event, row: SubjectRow, standing: Standing, now: datetime) -> bool:
    """Tell whether the event changed what the conditions ask it to have changed.

    Asked of the event alone where that is enough, so that it does not matter what came to be known since.
    """
    if not standing.changes:
        return True
    told = gate_scope(event, now)
    if all(change.holds(told) is change.afterwards for change in standing.changes):
        return True
    return standing.arms(event, row, now)


def _lasting(concern: Concern, named: frozenset[str]) -> Iterable[str]:
    type_ = concern.change.type
    for each in concern.delayed:
        if each.id in named and each.standing.reads_subject(type_) and not each.reads_event(type_):
            yield each.id


def messages_of(waves: Sequence[Sequence[Projected]]) -> list[Message]:
    """Give the messages that these waves tell of, where they matter."""
    return [each.concern.message for wave in waves for each in wave if each.concern.message is not None]
