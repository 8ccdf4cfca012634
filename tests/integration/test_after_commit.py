"""What follows a commit is best effort: neither an outage nor a refusal of Redis loses or stops anything."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.after_commit import AfterCommit
from pipeline.recording import write_batch
from pipeline.verdicts import Record
from shared.model.effects import Emit
from shared.model.runs import DeadLettered, HandedBack, Retried, RunError
from shared.redis_port import open_redis
from tests.journals import DONE, acted, ended
from tests.rooms import Room, claim
from tests.waiting import poll

ERROR = RunError("X", "", 1)
DUE = datetime(2200, 1, 1, tzinfo=UTC)


@pytest.fixture
def after(room: Room) -> Iterator[AfterCommit]:
    follows = AfterCommit(room.parts)
    follows.start()
    yield follows
    follows.close(5)


def write(room: Room, *records: Record, to: AfterCommit) -> None:
    """Commit records, and hand what follows to `to`."""
    to.add(room.database.transact(lambda conn: write_batch(conn, records, "w", datetime.now(UTC))))


def unsent(room: Room) -> int:
    return room.one("SELECT count(*) AS n FROM outbox WHERE sent_at IS NULL").n


def test_events_retries_and_counts_reach_redis(room: Room, after: AfterCommit) -> None:
    one, two, three, four = claim(room, *room.runs(room.automation(), [{}] * 4))
    redis, keys = room.parts.redis, room.parts.keys
    failing = replace(ended(two, Retried(ERROR, DUE, 1)), failed_type="SEND_WEBHOOK")
    last = replace(ended(three, DeadLettered(ERROR)), failed_type="SEND_WEBHOOK")
    write(room, acted(one, Emit("order.seen", {}), outcome=DONE), failing, last, to=after)
    write(room, ended(four, HandedBack(DUE)), to=after)
    poll(lambda: redis.zcard(keys.scheduled) == 2)
    assert redis.xlen(keys.stream) == 3
    assert redis.get(keys.action("UPDATE_RECORD", "succeeded")) == b"1"
    assert redis.get(keys.action("SEND_WEBHOOK", "failed")) == b"2"
    assert redis.get(keys.dead_letter("w1")) == b"1"
    poll(lambda: unsent(room) == 0)


def test_while_redis_is_away_events_stay_in_the_outbox(room: Room, tmp_path: Path) -> None:
    nowhere = open_redis(f"unix://{tmp_path}/no-such.sock")
    follows = AfterCommit(replace(room.parts, redis=nowhere))
    follows.start()
    [run] = claim(room, room.run(room.automation()))
    write(room, acted(run, Emit("order.seen", {}), outcome=DONE), to=follows)
    follows.close(10)
    assert not follows.is_alive()
    assert unsent(room) == 2


def test_a_counter_that_redis_refuses_sends_nothing_twice(room: Room, after: AfterCommit) -> None:
    redis, keys = room.parts.redis, room.parts.keys
    redis.xadd(keys.action("UPDATE_RECORD", "succeeded"), {"not": "a counter"})
    [run] = claim(room, room.run(room.automation()))
    write(room, acted(run, Emit("order.seen", {}), outcome=DONE), to=after)
    poll(lambda: unsent(room) == 0)
    assert redis.xlen(keys.stream) == 2


def test_a_stream_that_redis_refuses_leaves_the_event_to_the_relay(room: Room, after: AfterCommit) -> None:
    redis, keys = room.parts.redis, room.parts.keys
    redis.incr(keys.stream)
    [run] = claim(room, room.run(room.automation()))
    write(room, acted(run, Emit("order.seen", {}), outcome=DONE), to=after)
    poll(lambda: redis.get(keys.action("UPDATE_RECORD", "succeeded")) == b"1")
    after.close(5)
    assert unsent(room) == 2


def test_a_full_line_does_not_hold_up_the_journal(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.after_commit.WAITING_MAX", 1)
    follows = AfterCommit(room.parts)
    runs = claim(room, *room.runs(room.automation(), [{}] * 3))
    for run in runs:
        write(room, ended(run), to=follows)
    follows.start()
    poll(lambda: unsent(room) == 2)
    follows.close(5)
