"""The job at 02:30 in the night when the clocks go forward.

Elsewhere it was skipped for that day without a trace, or ran twice in autumn. Here it fires once each local
date: in spring at the end of the gap, in autumn at the first of two passes. The preview says
the same.
"""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from shared.model.event_fields import format_instant
from shared.services.fires import preview_fires
from shared.services.references import find_automation
from tests.timekeeping import Timekeeper, at, open_timekeeper

ZONE = "America/New_York"


@pytest.fixture
def keeper(database_url: str, redis_url: str) -> Iterator[Timekeeper]:
    with open_timekeeper(database_url, redis_url, "2026-03-07T05:00:00") as opened:
        yield opened


def previewed(keeper: Timekeeper, count: int) -> list[str]:
    with keeper.backends.database.read() as conn:
        row = find_automation(conn, "w1", "tick")
        found = preview_fires(conn, row, keeper.clock.now(), count)
    return [format_instant(fire.at) for fire in found.fires]


def sweep_until(keeper: Timekeeper, end: str) -> None:
    """Sweep every ten minutes, as a process does every second."""
    while keeper.clock.now() < at(end):
        keeper.clock.advance(timedelta(minutes=10))
        keeper.sweep()


def test_in_spring_it_fires_once_each_local_date_at_the_end_of_the_gap(keeper: Timekeeper) -> None:
    keeper.apply("30 2 * * *", ZONE)
    expected = ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]
    assert previewed(keeper, 3) == expected
    sweep_until(keeper, "2026-03-09T12:00:00")
    assert keeper.slots() == expected
    assert keeper.missed() == []


def test_in_autumn_it_fires_once_at_the_first_pass(keeper: Timekeeper) -> None:
    keeper.move_to("2026-10-31T12:00:00")
    keeper.apply("30 1 * * *", ZONE)
    expected = ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]
    assert previewed(keeper, 2) == expected
    sweep_until(keeper, "2026-11-02T12:00:00")
    assert keeper.slots() == expected
