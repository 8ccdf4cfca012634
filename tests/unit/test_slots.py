"""Which slots of a schedule are due, which of them fires, and that a long silence is cheap to make up for."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.time.cron import next_fires
from shared.time.slots import COUNTED, DueSlots, Slots, due_slots, take_turn

HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


def due(cron: str, first: str, now: str, zone: str = "UTC") -> DueSlots:
    return due_slots(cron, zone, at(first), at(first), at(now))


def test_one_slot_that_is_due_is_the_newest_and_leads_to_the_next() -> None:
    found = due("0 9 * * *", "2026-03-01T09:00", "2026-03-01T09:00:40")
    assert found == DueSlots(at("2026-03-01T09:00"), None, at("2026-03-02T09:00"))


def test_of_several_the_newest_fires_and_the_others_are_missed() -> None:
    now = at("2026-03-01T12:03:10")
    turn = take_turn(due("* * * * *", "2026-03-01T12:01", "2026-03-01T12:03:10"), now, HOUR)
    minutes = (at("2026-03-01T12:01"), at("2026-03-01T12:02"))
    assert turn.fires == at("2026-03-01T12:03")
    assert turn.missed == Slots(minutes, minutes[-1], has_more=False)
    assert turn.next == at("2026-03-01T12:04")


@pytest.mark.parametrize(
    ("late", "catchup", "fires"),
    [
        (timedelta(minutes=59), HOUR, True),
        (timedelta(minutes=60), HOUR, True),
        (timedelta(minutes=61), HOUR, False),
        (timedelta(seconds=40), timedelta(), True),
        (timedelta(seconds=61), timedelta(), False),
    ],
)
def test_the_newest_fires_if_it_is_young_enough_and_a_minute_is_no_delay(
    late: timedelta, catchup: timedelta, fires: bool
) -> None:
    slot = at("2026-03-01T09:00")
    turn = take_turn(due_slots("0 9 * * *", "UTC", slot, slot, slot + late), slot + late, catchup)
    assert (turn.fires == slot) is fires
    assert (turn.missed is None) is fires


def test_what_is_too_old_is_missed_with_the_newest_as_its_last() -> None:
    now = at("2026-03-05T12:00")
    turn = take_turn(due("0 9 * * *", "2026-03-01T09:00", "2026-03-05T12:00"), now, HOUR)
    assert turn.fires is None
    assert turn.missed is not None
    assert (len(turn.missed.listed), turn.missed.last) == (5, at("2026-03-05T09:00"))
    assert turn.next == at("2026-03-06T09:00")


def test_slots_between_the_first_and_an_edit_do_not_exist() -> None:
    first, edit, now = at("2026-03-01T09:00"), at("2026-03-01T11:50"), at("2026-03-01T12:00:30")
    found = due_slots("*/10 * * * *", "UTC", first, edit, now)
    assert found.newest == at("2026-03-01T12:00")
    assert found.older == Slots((first,), first, has_more=False)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "America/Havana"])
def test_of_a_year_of_minutes_few_are_listed_and_the_last_ones_are_known(zone: str) -> None:
    found = due("* * * * *", "2025-01-01T00:00", "2026-01-01T00:00:30", zone)
    assert found.newest == at("2026-01-01T00:00")
    assert found.older is not None
    assert (found.older.has_more, found.older.last) == (True, at("2025-12-31T23:59"))
    assert COUNTED <= len(found.older.listed) <= COUNTED + 1


CRONS = st.sampled_from(
    ["* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 9-17 * * MON-FRI", "* * 1 1 *", "0 0 29 2 *"]
)
ZONES = st.sampled_from(["UTC", "Europe/Paris", "America/New_York"])
INSTANTS = st.integers(0, 2 * 365 * 1440).map(lambda each: at("2025-01-01T00:00") + timedelta(minutes=each))


@given(cron=CRONS, zone=ZONES, begin=INSTANTS, days=st.floats(0, 400))
def test_the_newest_slot_is_the_last_one_before_now(
    cron: str, zone: str, begin: datetime, days: float
) -> None:
    first = next_fires(cron, zone, begin, 1)[0]
    now = first + timedelta(days=days)
    found = due_slots(cron, zone, first, first, now)
    assert first <= found.newest <= now
    assert found.next is not None
    assert found.next > now
    assert next_fires(cron, zone, found.newest, 1) == [found.next]
    if found.older is not None:
        assert next_fires(cron, zone, found.older.last, 1) == [found.newest]
        assert found.older.listed[0] == first
    else:
        assert found.newest == first
