"""The timers' loop: no failure ends it, and one duty's failure is not another's."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from shared.beats import count_beating
from shared.db.engine import open_database
from shared.errors import ConfigError
from shared.process import StopFlag
from shared.settings import Settings
from shared.time.clock import ManualClock, SystemClock
from tests.listening import capture_logs
from tests.timekeeping import Timekeeper, at, open_timekeeper
from tests.waiting import poll
from timers.service import Timers, serve


@pytest.fixture
def keeper(database_url: str, redis_url: str) -> Iterator[Timekeeper]:
    with open_timekeeper(database_url, redis_url, "2026-03-01T12:00:00") as opened:
        yield opened


def test_it_reconciles_at_its_start_and_then_every_five_minutes(keeper: Timekeeper) -> None:
    automation_id = keeper.apply("0 9 * * *")
    keeper.change("DELETE FROM schedules")
    timers = keeper.timers()
    timers.tick()
    assert keeper.next_fire(automation_id) == at("2026-03-02T09:00")
    keeper.change("DELETE FROM schedules")
    keeper.move_to("2026-03-01T12:04:59")
    timers.tick()
    assert keeper.next_fire(automation_id) is None
    keeper.move_to("2026-03-01T12:05:00")
    timers.tick()
    assert keeper.next_fire(automation_id) == at("2026-03-02T09:00")


def test_a_duty_that_failed_is_tried_again_soon_and_the_others_go_on(keeper: Timekeeper) -> None:
    automation_id = keeper.apply()
    keeper.change("DELETE FROM schedules")
    keeper.change("ALTER TABLE automations RENAME TO elsewhere")
    timers = keeper.timers()
    with capture_logs() as logs:
        timers.tick()
        keeper.change("ALTER TABLE elsewhere RENAME TO automations")
        keeper.move_to("2026-03-01T12:00:05")
        timers.tick()
    events = [line["event"] for line in logs]
    assert (events.count("outage_began"), events.count("outage_ended")) == (1, 1)
    assert keeper.next_fire(automation_id) == at("2026-03-01T12:01")


class Stumbling(ManualClock):
    """A clock that fails as nothing that is known fails, until it is mended."""

    mended = False

    def now(self) -> datetime:
        if not self.mended:
            raise RuntimeError("a bug")
        return super().now()


def test_a_bug_costs_a_pass_and_not_the_loop(keeper: Timekeeper) -> None:
    keeper.apply()
    clock = Stumbling(at("2026-03-01T12:01:00"))
    timers = Timers(Settings(_env_file=None), replace(keeper.backends, clock=clock))
    with capture_logs() as logs:
        timers.tick()
    assert [(line["event"], line["duty"]) for line in logs] == [
        ("timers_pass_failed", "beat"),
        ("timers_pass_failed", "schedules"),
        ("timers_pass_failed", "reconcile"),
        ("timers_pass_failed", "delayed"),
        ("timers_pass_failed", "idle"),
    ]
    clock.mended = True
    timers.tick()
    assert keeper.slots() == ["2026-03-01T12:01:00Z"]


def test_a_definition_without_its_cron_stops_no_other(keeper: Timekeeper) -> None:
    blank, whole = keeper.apply(key="blank"), keeper.apply(key="whole")
    without = """UPDATE automations SET definition = '{"trigger": {"type": "SCHEDULE"}}' WHERE id = :id"""
    keeper.change(without, id=blank)
    keeper.change("DELETE FROM schedules")
    with capture_logs() as logs:
        keeper.timers().tick()
    assert keeper.next_fire(blank) is None
    assert keeper.next_fire(whole) == at("2026-03-01T12:01")
    told = {line["event"] for line in logs if line["log_level"] == "error"}
    assert told == {"schedule_unreadable", "schedules_stand_still"}


def test_an_outage_of_sql_does_not_end_it_and_it_ends_when_asked(keeper: Timekeeper, tmp_path: Path) -> None:
    away = open_database(f"sqlite:///{tmp_path / 'nothing' / 'here.db'}")
    backends = replace(keeper.backends, database=away, clock=SystemClock())
    stop = StopFlag()
    timers = Timers(Settings(_env_file=None, timers_interval_s=0.01), backends)
    with capture_logs() as logs:
        thread = threading.Thread(target=timers.run, args=(stop,), daemon=True)
        thread.start()
        poll(lambda: [line for line in logs if line["event"] == "outage_began"])
        assert thread.is_alive()
        stop.raise_()
        thread.join(10)
    assert not thread.is_alive()
    away.dispose()


def test_it_shows_that_it_lives_until_it_ends(keeper: Timekeeper) -> None:
    backends = replace(keeper.backends, clock=SystemClock())
    stop = StopFlag()
    timers = Timers(Settings(_env_file=None, timers_interval_s=0.01), backends)
    thread = threading.Thread(target=timers.run, args=(stop,), daemon=True)
    thread.start()

    def living() -> int:
        return count_beating(backends.redis, backends.keys, "timers", backends.clock.now())

    poll(lambda: living() == 1)
    stop.raise_()
    thread.join(10)
    assert living() == 0


def test_it_needs_both_addresses() -> None:
    with pytest.raises(ConfigError, match="REDIS_URL"):
        serve(Settings(_env_file=None))
