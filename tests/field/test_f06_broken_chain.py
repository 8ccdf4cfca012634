"""Active, without an error, and it never fires again.

Elsewhere each run wrote down when the next one is due. A run that failed in a blip of the database broke
that chain, and the schedule stood still, enabled, until somebody toggled it by hand. Here the row moves on as
the run is made and knows nothing of how it ends; and what is active without a next fire is told of.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from knockon.doctor import examine
from shared.settings import Settings
from tests.listening import capture_logs
from tests.timekeeping import Timekeeper, at, open_timekeeper
from timers.reconcile import EVERY_S

STILL = "active, but without a next fire"


@pytest.fixture
def keeper(database_url: str, redis_url: str) -> Iterator[Timekeeper]:
    with open_timekeeper(database_url, redis_url, "2026-03-01T09:59:00") as opened:
        yield opened


@contextmanager
def without_runs(keeper: Timekeeper) -> Iterator[None]:
    """Let SQL know no table of runs."""
    keeper.change("ALTER TABLE automation_runs RENAME TO elsewhere")
    yield
    keeper.change("ALTER TABLE elsewhere RENAME TO automation_runs")


def test_a_blip_of_the_database_breaks_no_chain(keeper: Timekeeper) -> None:
    automation_id = keeper.apply("*/5 * * * *")
    timers = keeper.timers()
    keeper.move_to("2026-03-01T10:00:00")
    timers.tick()
    keeper.change("UPDATE automation_runs SET status = 'FAILED'")
    with without_runs(keeper), capture_logs() as logs:
        for second in range(1, 41):
            keeper.move_to(f"2026-03-01T10:00:{second:02}")
            timers.tick()
        keeper.move_to("2026-03-01T10:05:01")
        timers.tick()
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["outage_began"]
    assert keeper.slots() == ["2026-03-01T10:00:00Z"]
    for instant in ("2026-03-01T10:05:40", "2026-03-01T10:10:00", "2026-03-01T10:11:00"):
        keeper.move_to(instant)
        timers.tick()
    assert keeper.slots() == [f"2026-03-01T10:{minute}:00Z" for minute in ("00", "05", "10")]
    assert keeper.next_fire(automation_id) == at("2026-03-01T10:15")


def test_a_lost_occurrence_is_an_alarm_and_comes_back_with_the_next_reconciliation(
    keeper: Timekeeper, database_url: str, redis_url: str
) -> None:
    def doctor() -> str:
        servers = Settings(_env_file=None, database_url=database_url, redis_url=redis_url)
        return next(found.text for found in examine(servers) if found.subject == "schedules")

    automation_id = keeper.apply("0 0 1 1 *", key="yearly")
    keeper.change("UPDATE schedules SET next_fire_at = '2100-01-01T00:00:00+00:00'")
    timers = keeper.timers()
    timers.tick()
    assert STILL not in doctor()
    keeper.change("DELETE FROM schedules")
    assert "yearly (w1)" in doctor()
    assert STILL in doctor()
    for _ in range(int(EVERY_S) // 10):
        keeper.clock.advance(timedelta(seconds=10))
        timers.tick()
    assert keeper.next_fire(automation_id) == at("2027-01-01T00:00")
    assert STILL not in doctor()
