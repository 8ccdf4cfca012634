"""Which slots of a schedule are due, and which of them still count (docs/automations.md, "Schedules"). Pure.

A slot is an instant that a schedule names. However long nobody looked, few of them are walked: the newest is
found by halving, and the rest are counted up to a bound.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from shared.time.cron import next_fires

COUNTED: Final = 100
ON_TIME: Final = timedelta(seconds=60)
_CLOSEST: Final = timedelta(minutes=2)
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots in a row: the earliest ones, the last one, and whether there are more than are listed."""

    listed: tuple[datetime, ...]
    last: datetime
    has_more: bool


@dataclass(frozen=True, slots=True)
class DueSlots:
    """What is due: the newest slot and those before it. `next` is the first that is not; None: no more."""

    newest: datetime
    older: Slots | None
    next: datetime | None


@dataclass(frozen=True, slots=True)
class Turn:
    """What comes of due slots: the one that fires, those that are missed, and when to look again."""

    fires: datetime | None
    missed: Slots | None
    next: datetime | None


def first_fire(cron: str, zone: str, after: datetime) -> datetime | None:
    """Give the first slot strictly after `after`, or None where the calendar ends. Raises ValueError."""
    return next(iter(next_fires(cron, zone, after, 1)), None)


def take_turn(due: DueSlots, now: datetime, catchup: timedelta) -> Turn:
    """Decide what becomes of due slots: the newest fires unless it is too old, the older ones are missed.

    A sweep that is less than a minute late is on time, whatever `catchup` says.
    """
    if now - due.newest <= max(catchup, ON_TIME):
        return Turn(due.newest, due.older, due.next)
    return Turn(None, _with_newest(due), due.next)


@lru_cache(maxsize=4096)
def due_slots(cron: str, zone: str, first: datetime, start: datetime, now: datetime) -> DueSlots:
    """Give what is due at `now`: the slot `first`, and those after `start`, which is not before it.

    Raises ValueError for an expression or a zone that cannot be read. Schedules that are alike ask for the
    same, so that the answer is kept.
    """
    following = first_fire(cron, zone, start)
    if following is None or following > now:
        return DueSlots(first, None, following)
    known = [first, *next_fires(cron, zone, start, COUNTED)]
    due = [slot for slot in known if slot <= now]
    newest = due[-1] if len(due) <= COUNTED else _last_fire(cron, zone, due[-1], now)
    older = tuple(slot for slot in due if slot < newest)
    last = older[-1] if newest == due[-1] else _last_fire(cron, zone, due[-1], newest - _TICK)
    return DueSlots(newest, Slots(older, last, last != older[-1]), first_fire(cron, zone, newest))


def _with_newest(due: DueSlots) -> Slots:
    if due.older is None:
        return Slots((due.newest,), due.newest, has_more=False)
    if due.older.has_more or len(due.older.listed) >= COUNTED:
        return Slots(due.older.listed, due.newest, has_more=True)
    return Slots((*due.older.listed, due.newest), due.newest, has_more=False)


def _last_fire(cron: str, zone: str, known: datetime, until: datetime) -> datetime:
    """Give the last slot that is not after `until`, given that `known` is one."""
    low, high, back = known, until, _CLOSEST
    while until - back > low:
        found = first_fire(cron, zone, until - back)
        if found is not None and found <= until:
            low = found
            break
        high, back = until - back, back * 2
    return _narrow(cron, zone, (low, high), until)


def _narrow(cron: str, zone: str, span: tuple[datetime, datetime], until: datetime) -> datetime:
    """Find the last slot by halving `span`: it begins with a slot, and after its end there is none."""
    low, high = span
    while (found := first_fire(cron, zone, low)) is not None and found <= until:
        low = found
        middle = low + (high - low) / 2
        further = first_fire(cron, zone, middle)
        if further is not None and further <= until:
            low = further
        else:
            high = middle
    return low
