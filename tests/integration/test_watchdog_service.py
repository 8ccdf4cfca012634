"""The watchdog's loop: one of many acts, another takes over, and no failure ends the watch."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from shared.errors import ConfigError
from shared.process import StopFlag
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from shared.settings import Settings
from shared.time.clock import SystemClock
from tests.listening import capture_logs
from tests.waiting import poll
from tests.watchdog_stage import Stage, close_stage, open_stage
from watchdog.leases import Leases
from watchdog.service import Watchdog, serve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    opened = open_stage(database_url, redis_url)
    yield opened
    close_stage(opened)


def holder(stage: Stage) -> str:
    (row,) = stage.rows("SELECT owner FROM locks WHERE name = 'watchdog'")
    owner: str = row.owner
    return owner


def test_one_of_many_acts(stage: Stage) -> None:
    first, second = Watchdog(stage.parts), Watchdog(stage.twin("watchdog-2"))
    for _ in range(20):
        first.tick()
        second.tick()
        stage.advance(5)
        assert holder(stage) == "watchdog-1"


def test_another_one_takes_over_from_one_that_is_frozen(stage: Stage) -> None:
    claim = stage.running()
    first, second = Watchdog(stage.parts), Watchdog(stage.twin("watchdog-2"))
    first.tick()
    for _ in range(20):
        stage.advance(5)
        second.tick()
    assert holder(stage) == "watchdog-2"
    assert stage.run(claim.run_id).status == "PENDING"
    first.tick()
    assert holder(stage) == "watchdog-2"
    assert stage.run(claim.run_id).retry_count == 1
    assert stage.handled() == [claim.run_id]


def test_a_crashed_run_is_back_within_a_minute_and_a_half(stage: Stage) -> None:
    watchdog = Watchdog(stage.parts)
    claim = stage.running()
    for _ in range(92):
        watchdog.tick()
        stage.advance(1)
    assert stage.run(claim.run_id).status == "PENDING"


def test_a_flushed_redis_is_healed_within_a_minute_and_a_half(stage: Stage) -> None:
    watchdog = Watchdog(stage.parts)
    run_ids = stage.pending(60)
    for _ in range(91):
        watchdog.tick()
        stage.advance(1)
    assert sorted(stage.handled()) == sorted(run_ids)


def test_a_duty_that_fails_does_not_keep_the_others_from_theirs(stage: Stage) -> None:
    claim = stage.running()
    away = open_redis("unix:///nowhere/redis.sock")
    watchdog = Watchdog(replace(stage.parts, redis=away, queue=HandleQueue(away, stage.parts.keys)))
    failed = 0
    for _ in range(92):
        try:
            watchdog.tick()
        except RedisConnectionError:
            failed += 1
        stage.advance(1)
    assert failed >= 2
    assert stage.run(claim.run_id).status == "PENDING"


def test_it_ends_when_asked_and_gives_up_its_lock(stage: Stage) -> None:
    stop = StopFlag()
    parts = replace(stage.parts, clock=SystemClock())
    thread = threading.Thread(target=Watchdog(parts).run, args=(stop,), daemon=True)
    thread.start()
    poll(lambda: stage.rows("SELECT owner FROM locks"))
    stop.raise_()
    thread.join(10)
    assert not thread.is_alive()
    assert stage.rows("SELECT owner FROM locks") == []


def test_an_outage_of_sql_does_not_end_the_watch(redis_url: str, tmp_path: Path) -> None:
    stage = open_stage(f"sqlite:///{tmp_path / 'nothing' / 'here.db'}", redis_url)
    stop = StopFlag()
    with capture_logs() as logs:
        watch = threading.Thread(target=Watchdog(stage.parts).run, args=(stop,), daemon=True)
        watch.start()
        poll(lambda: [line for line in logs if line["event"] == "outage_began"])
        assert watch.is_alive()
        stop.raise_()
        watch.join(10)
    assert not watch.is_alive()
    close_stage(stage)


def test_a_clock_that_is_off_is_told_of(postgres_url: str, redis_url: str) -> None:
    stage = open_stage(postgres_url, redis_url)
    with capture_logs() as logs:
        Watchdog(stage.parts).tick()
        Watchdog(replace(stage.parts, clock=SystemClock())).tick()
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["clock_is_off"]
    close_stage(stage)


def test_it_needs_both_addresses() -> None:
    with pytest.raises(ConfigError, match="REDIS_URL"):
        serve(Settings(_env_file=None))


def start_process(folder: Path, **variables: str) -> subprocess.Popen[bytes]:
    code = "import sys; from shared.settings import load_settings; from watchdog.service import serve;"
    code += " sys.exit(serve(load_settings()))"
    environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=folder)


def test_a_watchdog_killed_in_the_middle_of_a_reclaim_leaves_it_to_the_next(
    stage: Stage, database_url: str, redis_url: str, tmp_path: Path
) -> None:
    claim = stage.running(crashes=2)
    process = start_process(
        tmp_path,
        DATABASE_URL=database_url,
        REDIS_URL=redis_url,
        WATCHDOG_LEASES_S="0.2",
        KNOCKON_FAULT="rescue.before_commit:kill9",
    )
    assert process.wait(30) == -signal.SIGKILL
    assert stage.run(claim.run_id).status == "RUNNING"
    assert stage.logs(claim.run_id) == []
    leases = Leases(stage.parts)
    stage.advance(61)
    leases.reclaim()
    stage.advance(15)
    leases.reclaim()
    assert stage.run(claim.run_id).status == "DEAD_LETTER"
    assert stage.logs(claim.run_id) == ["run dead-lettered"]


def test_a_process_keeps_watch_and_ends_well(sqlite_url: str, redis_url: str, tmp_path: Path) -> None:
    process = start_process(tmp_path, DATABASE_URL=sqlite_url, REDIS_URL=redis_url)
    stage = open_stage(sqlite_url, redis_url)
    try:
        poll(lambda: stage.rows("SELECT owner FROM locks"), timeout_s=20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert stage.rows("SELECT owner FROM locks") == []
    finally:
        process.kill()
        process.wait()
        close_stage(stage)
