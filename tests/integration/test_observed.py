"""What processes measure of their work reaches Redis with what they send there anyway."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis import Redis

from pipeline.after_commit import AfterCommit
from pipeline.recording import write_batch
from shared.keys import Keys, observed_key
from shared.model.moves import SkipReason
from shared.model.runs import DeadLettered, Failed, Outcome, QueueKind, Retried, RunError, Succeeded
from shared.observations import BUCKETS, SUM, Measure
from shared.queue import HandleQueue
from tests.journals import DONE, ended
from tests.rooms import Room, claim, open_room
from tests.timekeeping import open_timekeeper
from tests.waiting import poll
from tests.watchdog_stage import close_stage, open_stage
from tests.worker_stage import KEYS, Recorder, working
from watchdog.leases import Leases

ERROR = RunError("X", "", 1)
LATER = datetime(2200, 1, 1, tzinfo=UTC)
PLAIN = Keys("", "factory:events")


def observed(redis: Any, measure: Measure, keys: Keys = PLAIN) -> tuple[int, float]:
    """Give how many were measured, and their sum in seconds."""
    counts = {name.decode(): int(value) for name, value in redis.hgetall(observed_key(keys, measure)).items()}
    return sum(counts.get(bucket, 0) for bucket in BUCKETS), counts.get(SUM, 0) / 1_000_000


@pytest.fixture
def room(redis_url: str, sqlite_url: str) -> Iterator[Room]:
    opened = open_room(redis_url, sqlite_url)
    yield opened
    opened.database.dispose()
    opened.parts.redis.close()


def test_each_run_is_timed_to_its_end_by_how_it_ended(room: Room, redis_client: Redis) -> None:
    runs = claim(room, *room.runs(room.automation(), [{}] * 5))
    outcomes: tuple[Outcome, ...] = (
        DONE,
        Succeeded(SkipReason.CONDITIONS, {}),
        Failed(ERROR),
        DeadLettered(ERROR),
        Retried(ERROR, LATER, 1),
    )
    records = [ended(run, outcome) for run, outcome in zip(runs, outcomes, strict=True)]
    follows = AfterCommit(room.parts)
    follows.start()
    follows.add(room.database.transact(lambda conn: write_batch(conn, records, "w", datetime.now(UTC))))
    follows.close(10)
    counts = {measure: observed(redis_client, measure)[0] for measure in Measure}
    assert {measure for measure, count in counts.items() if count} == {
        Measure.RUN_SUCCEEDED,
        Measure.RUN_SKIPPED,
        Measure.RUN_FAILED,
        Measure.RUN_DEAD_LETTER,
    }
    assert max(counts.values()) == 1
    assert redis_client.get(PLAIN.count("dead_letters")) == b"1"


def test_a_run_whose_worker_died_too_often_is_timed_and_counted(
    sqlite_url: str, redis_url: str, redis_client: Redis
) -> None:
    stage = open_stage(sqlite_url, redis_url)
    held = stage.running()
    stage.write("UPDATE automation_runs SET crash_count = 2 WHERE id = :id", id=held.run_id)
    leases = Leases(stage.parts)
    for seconds in (61, 15):
        stage.advance(seconds)
        leases.reclaim()
    assert stage.run(held.run_id).status == "DEAD_LETTER"
    keys = stage.parts.keys
    assert observed(redis_client, Measure.RUN_DEAD_LETTER, keys) == (1, 76.0)
    assert redis_client.get(keys.count("dead_letters")) == b"1"
    close_stage(stage)


def test_runs_are_timed_from_their_handle_to_a_worker(redis_url: str, redis_client: Redis) -> None:
    pushed_at = datetime.now(UTC) - timedelta(seconds=40)
    with closing(Redis.from_url(redis_url)) as client:
        port: Any = client
        HandleQueue(port, KEYS).push(QueueKind.MAIN, ["r1", "r2", "r3"], pushed_at)
    with working(redis_url, Recorder()):
        poll(lambda: observed(redis_client, Measure.QUEUE_WAIT, KEYS)[0])
    count, sum_s = observed(redis_client, Measure.QUEUE_WAIT, KEYS)
    assert count == 3
    assert sum_s == pytest.approx(3 * 40, abs=30)


def test_a_schedule_is_timed_from_its_slot_and_sent_with_the_next_beat(
    sqlite_url: str, redis_url: str, redis_client: Redis
) -> None:
    with open_timekeeper(sqlite_url, redis_url, "2026-03-01T12:00:30") as keeper:
        keeper.apply("* * * * *")
        timers = keeper.timers()
        timers.tick()
        keeper.move_to("2026-03-01T12:01:07")
        timers.tick()
        keeper.move_to("2026-03-01T12:01:20")
        timers.tick()
        assert len(keeper.slots()) == 1
        assert observed(redis_client, Measure.SWEEP_LATENESS) == (1, 7.0)
