"""Somebody edits an automation whose time has come.

Elsewhere saving any field computed the next time anew: the occurrence that was due was skipped. Here a new
name changes nothing, and of a new cron or zone only times after the edit count; what was due still fires.
"""

from collections.abc import Iterator

import pytest

from tests.timekeeping import Timekeeper, at, open_timekeeper

DUE = "2026-03-02T09:00:00Z"


@pytest.fixture
def keeper(database_url: str, redis_url: str) -> Iterator[Timekeeper]:
    with open_timekeeper(database_url, redis_url, "2026-03-01T12:00:00") as opened:
        yield opened


def edit(keeper: Timekeeper, cron: str, zone: str | None = None, **given: object) -> str:
    """Have the timers 40 s behind, and edit in between."""
    keeper.apply("0 9 * * *", "UTC")
    keeper.move_to("2026-03-02T09:00:20")
    automation_id = keeper.apply(cron, zone, **given)
    keeper.sweep_at("2026-03-02T09:00:40")
    return automation_id


def test_another_name_changes_nothing_about_when_it_fires(keeper: Timekeeper) -> None:
    automation_id = edit(keeper, "0 9 * * *", "UTC", name="Another name")
    assert keeper.slots() == [DUE]
    assert keeper.next_fire(automation_id) == at("2026-03-03T09:00")


def test_of_another_cron_the_slot_that_was_due_still_fires_once(keeper: Timekeeper) -> None:
    automation_id = edit(keeper, "0 18 * * *", "UTC")
    assert keeper.slots() == [DUE]
    assert keeper.next_fire(automation_id) == at("2026-03-02T18:00")
    keeper.sweep_at("2026-03-02T18:00:01")
    assert keeper.slots() == [DUE, "2026-03-02T18:00:00Z"]


def test_another_zone_makes_no_slot_in_the_past(keeper: Timekeeper) -> None:
    automation_id = edit(keeper, "0 9 * * *", "Europe/Paris")
    assert keeper.slots() == [DUE]
    assert keeper.next_fire(automation_id) == at("2026-03-03T08:00")
    assert keeper.missed() == []


def test_an_interval_is_not_pushed_back_by_saving_the_form(keeper: Timekeeper) -> None:
    automation_id = keeper.apply("0 */6 * * *")
    keeper.move_to("2026-03-01T17:59:00")
    keeper.apply("0 */6 * * *", name="Another name")
    assert keeper.next_fire(automation_id) == at("2026-03-01T18:00")
