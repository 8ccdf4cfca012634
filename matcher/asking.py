"""Reads what decisions on a wave of events need, all of it at once, and has them decided."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from matcher.concerns import Projected
from matcher.deeds import Deed
from matcher.delayed import Delayed
from matcher.ledger import Ledger
from matcher.state_deciding import StateCase, decide_state
from matcher.talk_deciding import ANCHORS, TalkCase, decide_talk
from shared.db.messages import MessageKey, find_messages
from shared.db.pending import OpenKey, Stand, find_trigger_events, lock_lapsed
from shared.db.talk_facts import read_talk
from shared.model.messages import Message
from shared.model.pending import Anchor, trigger_event_of
from shared.rules.talk import is_from_machine


def state_deeds(conn: Connection, wave: Iterable[Projected], ledger: Ledger, now: datetime) -> Iterator[Deed]:
    """Say what a wave means for what waits for states."""
    asked = [
        (each, delayed, ledger.find(delayed.id, each.concern.key, Anchor.STATE))
        for each in wave
        for delayed in each.concern.delayed
    ]
    read = (stand.id for each, delayed, stand in asked if stand and delayed.reads_event(each.row.type))
    events = find_trigger_events(conn, read)
    for each, delayed, stand in asked:
        event = events.get(stand.id) if stand else None
        armed_by = None if event is None else trigger_event_of(event)
        yield from decide_state(StateCase(each, delayed, stand, armed_by, now))


@dataclass(frozen=True, slots=True)
class _Asked:
    """One automation that an event may mean something for: its open row, and the message that names it."""

    at: Projected
    delayed: Delayed
    stand: Stand | None
    lapsed: Stand | None
    told: Message | None

    @property
    def is_new(self) -> bool:
        """Tell whether the event's own message is the newest that names the automation."""
        known = self.stand or self.lapsed
        if self.told is None or known is None:
            return self.told is not None
        return self.told.stamp > known.episode.anchor_stamp

    @property
    def held(self) -> MessageKey:
        """The key of the message that the row waits with, or waited."""
        known = self.stand or self.lapsed
        return (known.workspace_id, known.episode.message_id or "") if known else ("", "")


def talk_deeds(conn: Connection, wave: Sequence[Projected], ledger: Ledger, now: datetime) -> Iterator[Deed]:
    """Say what a wave means for what waits for answers."""
    lapsed = lock_lapsed(conn, (key for each in wave if each.is_late_resolve for key in _idle(each, ledger)))
    asked = [one for each in wave for one in _asked(each, ledger, lapsed, now)]
    held = find_messages(conn, (one.held for one in asked if not one.is_new))
    cases = [
        TalkCase(one.at, one.delayed, one.stand, one.lapsed, newest, one.is_new)
        for one in asked
        if (newest := one.told if one.is_new else held.get(one.held)) is not None
    ]
    talks = read_talk(conn, (case.ask for case in cases))
    for case in cases:
        yield from decide_talk(case, talks[case.ask])


def _idle(each: Projected, ledger: Ledger) -> Iterator[OpenKey]:
    """Name what messages may name and what waits for no agent of this conversation."""
    _, type_, id_ = key = each.concern.key
    for delayed in each.concern.delayed:
        if delayed.hears_messages and ledger.find(delayed.id, key, Anchor.AWAITING_AGENT) is None:
            yield delayed.id, type_, id_


def _asked(
    each: Projected, ledger: Ledger, lapsed: Mapping[OpenKey, Stand], now: datetime
) -> Iterator[_Asked]:
    concern = each.concern
    for delayed in concern.delayed:
        told = concern.message if _names(each, delayed, now) else None
        for anchor in ANCHORS.values():
            stand = ledger.find(delayed.id, concern.key, anchor)
            ended = lapsed.get((delayed.id, *concern.key[1:])) if anchor is Anchor.AWAITING_AGENT else None
            named = told if told and ANCHORS[told.direction] is anchor else None
            if named or ended or (stand is not None and concern.may_answer):
                yield _Asked(each, delayed, stand, ended, named)


def _names(each: Projected, delayed: Delayed, now: datetime) -> bool:
    """Tell whether the event's message names the automation, and meets its conditions."""
    message = each.concern.message
    if message is None or delayed.id not in each.named or each.row.deleted is not None:
        return False
    if is_from_machine(message) or not delayed.standing.hears(message):
        return False
    return delayed.standing.arms(each.concern.event, each.row, now)
