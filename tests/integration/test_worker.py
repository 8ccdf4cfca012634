"""The worker's loop on a real Redis: what is read, what is dropped, and that no outage ends it."""

import pickle
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from redis import Redis
from rq.command import send_shutdown_command
from rq.suspension import resume, suspend
from rq.worker import Worker

from knockon.embedded import start_redis
from shared.model.runs import QueueKind
from shared.process import StopFlag
from shared.queue import FUNCTION, decode_handle, make_handle_id
from shared.redis_port import open_redis
from shared.time.clock import ManualClock
from tests.listening import capture_logs
from tests.waiting import poll
from tests.worker_stage import AT, KEYS, LISTS, Recorder, leftovers, make_link, poll_clean, push, working
from worker.presence import HEARTBEAT_S
from worker.reading import LEFT_BEHIND_S, HandleReader
from worker.run_worker import RunWorker

MAIN, BULK = LISTS[QueueKind.MAIN], LISTS[QueueKind.BULK]
BAD = KEYS.count("handles_bad")
RUN_IDS = [f"r{n}" for n in range(7)]


class Trap:
    """An object whose unpickling would be noticed."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return pytest.fail, ("a payload was unpickled",)


def make_reader(redis_url: str, clock: ManualClock | None = None) -> HandleReader:
    return HandleReader(open_redis(redis_url), KEYS, clock or ManualClock(AT))


def test_runs_are_claimed_and_their_handle_is_gone(redis_url: str, redis_client: Redis) -> None:
    engine = Recorder()
    push(redis_url, RUN_IDS)
    with working(redis_url, engine):
        poll(lambda: engine.taken == RUN_IDS)
        poll_clean(redis_client)


def test_what_there_is_no_room_for_stays_in_front_with_its_stamp(redis_url: str, redis_client: Redis) -> None:
    reader = make_reader(redis_url)
    push(redis_url, RUN_IDS)
    push(redis_url, ["later"])
    job = reader.take(0.1)
    assert job is not None
    reader.acknowledge(job, RUN_IDS[3:])
    client: Any = redis_client
    head = client.lindex(MAIN, 0).decode()
    handle = decode_handle(head, client.hgetall(f"rq:job:{head}"))
    assert (handle.run_ids, handle.at) == (tuple(RUN_IDS[3:]), AT)
    assert redis_client.llen(MAIN) == 2
    assert not redis_client.exists(job.hash_key)


def test_a_long_handle_is_claimed_in_pieces_in_order(redis_url: str, redis_client: Redis) -> None:
    engine = Recorder(room=3)
    push(redis_url, RUN_IDS)
    with working(redis_url, engine):
        poll(lambda: engine.claims == [RUN_IDS[:3], RUN_IDS[3:6], RUN_IDS[6:]])
        poll_clean(redis_client)


def test_nothing_is_read_while_there_is_no_room(redis_url: str, redis_client: Redis) -> None:
    engine = Recorder(room=0)
    push(redis_url, RUN_IDS)
    with working(redis_url, engine) as running:
        poll(lambda: redis_client.exists(running.worker.key))
        assert redis_client.llen(MAIN) == 1
        engine.room = 50
        poll(lambda: engine.taken == RUN_IDS)


def test_one_bulk_handle_is_taken_for_every_three_others(redis_url: str) -> None:
    reader = make_reader(redis_url)
    for n in range(8):
        push(redis_url, [f"m{n}"])
        push(redis_url, [f"b{n}"], QueueKind.BULK)
    taken = []
    for _ in range(16):
        job = reader.take(0.1)
        assert job is not None
        assert job.handle is not None
        taken.append(job.handle.run_ids[0][0])
        reader.acknowledge(job, [])
    assert "".join(taken) == "mmmbmmmbmmbbbbbb"
    assert reader.take(0.01) is None


def wrong_type(client: Redis) -> str:
    handle_id = make_handle_id(QueueKind.MAIN, AT)
    client.rpush(f"rq:job:{handle_id}", "x")
    return handle_id


def without_data(client: Redis) -> str:
    client.hset("rq:job:main-1-1", "x", "y")
    return "main-1-1"


def with_data(data: bytes, handle_id: str | None = None) -> Callable[[Redis], str]:
    def made(client: Redis) -> str:
        made_id = handle_id or make_handle_id(QueueKind.MAIN, AT)
        client.hset(f"rq:job:{made_id}", "data", data)
        return made_id

    return made


def foreign(client: Redis) -> str:
    payload = orjson.dumps(["os.system", None, [], {"run_ids": ["r1"]}])
    return with_data(zlib.compress(payload))(client)


BAD_HANDLES: dict[str, Callable[[Redis], str | bytes]] = {
    "pickle": with_data(zlib.compress(pickle.dumps(Trap()))),
    "plain pickle": with_data(pickle.dumps(Trap())),
    "foreign function": foreign,
    "garbage": with_data(b"\x00\xff garbage"),
    "zip bomb": with_data(zlib.compress(b"[" * 50_000_000, 1)),
    "no hash": lambda _client: make_handle_id(QueueKind.MAIN, AT),
    "no data": without_data,
    "wrong type": wrong_type,
    "foreign id": with_data(b"x", "somebody-elses-job"),
    "no id": lambda _client: "a:b/c d",
    "no text": lambda _client: b"\xff\xfe",
    "empty": lambda _client: b"",
    "hostile run ids": with_data(zlib.compress(orjson.dumps([FUNCTION, None, [], {"run_ids": ["\x00"]}]))),
}


@pytest.mark.parametrize("name", BAD_HANDLES)
def test_a_bad_handle_is_counted_and_dropped_and_the_next_is_taken(
    name: str, redis_url: str, redis_client: Redis
) -> None:
    redis_client.rpush(MAIN, BAD_HANDLES[name](redis_client))
    push(redis_url, ["good"])
    engine = Recorder()
    with working(redis_url, engine) as running:
        poll(lambda: engine.taken == ["good"])
        poll_clean(redis_client)
        assert redis_client.get(BAD) == b"1"
        assert running.thread.is_alive()


def test_twenty_copies_of_a_handle_are_all_cleared_away(redis_url: str, redis_client: Redis) -> None:
    push(redis_url, ["r1"])
    client: Any = redis_client
    client.rpush(MAIN, *[client.lindex(MAIN, 0)] * 19)
    first, second = Recorder(), Recorder()
    with working(redis_url, first), working(redis_url, second):
        poll_clean(redis_client)
    assert 1 <= len(first.taken + second.taken) <= 2


def test_an_outage_of_sql_puts_the_handle_back(redis_url: str, redis_client: Redis) -> None:
    engine = Recorder(outages=2)
    push(redis_url, RUN_IDS)
    with capture_logs() as logs, working(redis_url, engine):
        poll(lambda: engine.taken == RUN_IDS)
        poll_clean(redis_client)
    events = [line["event"] for line in logs]
    assert (events.count("server_lost"), events.count("server_found_again")) == (1, 1)
    assert redis_client.get(BAD) is None


def test_a_fault_of_ours_ends_the_loop_with_its_reason(redis_url: str, redis_client: Redis) -> None:
    engine = Recorder(error=ZeroDivisionError("a bug"))
    push(redis_url, RUN_IDS)
    with capture_logs() as logs, working(redis_url, engine) as running:
        assert running.ended()
        assert running.worker.failure == "a handle could not be driven"
    assert "handle_failed" in [line["event"] for line in logs]
    assert leftovers(redis_client) == []


def test_an_engine_that_cannot_go_on_ends_the_loop(redis_url: str) -> None:
    engine = Recorder()
    with working(redis_url, engine) as running:
        engine.reason = "the journal's writer died"
        assert running.ended()
        assert running.worker.failure == "the journal's writer died"


def test_a_handle_left_behind_goes_back_to_its_queue_after_ten_seconds(
    redis_url: str, redis_client: Redis
) -> None:
    clock = ManualClock(AT)
    push(redis_url, ["r1"])
    push(redis_url, ["r2"], QueueKind.BULK)
    dead, living, other = make_reader(redis_url), make_reader(redis_url, clock), make_reader(redis_url, clock)
    assert dead.take(0.1)
    assert dead.take(0.1)
    for _ in range(2):
        living.sweep()
        other.sweep()
        assert redis_client.llen(MAIN) + redis_client.llen(BULK) == 0
        clock.advance(timedelta(seconds=LEFT_BEHIND_S / 2))
    living.sweep()
    other.sweep()
    assert (redis_client.llen(MAIN), redis_client.llen(BULK)) == (1, 1)
    assert redis_client.llen(f"{MAIN}:intermediate") == 0


def test_a_handle_left_behind_whose_hash_is_gone_is_dropped(redis_url: str, redis_client: Redis) -> None:
    clock = ManualClock(AT)
    reader = make_reader(redis_url, clock)
    redis_client.rpush(f"{MAIN}:intermediate", "main-1-1", b"\xff")
    reader.sweep()
    clock.advance(timedelta(seconds=LEFT_BEHIND_S))
    reader.sweep()
    assert leftovers(redis_client) == []


def test_suspension_pauses_reading_and_is_shown(redis_url: str, redis_client: Redis) -> None:
    engine = Recorder()
    suspend(redis_client)
    push(redis_url, RUN_IDS)
    with working(redis_url, engine) as running:
        poll(lambda: redis_client.hget(running.worker.key, "state") == b"suspended")
        assert engine.taken == []
        resume(redis_client)
        poll(lambda: engine.taken == RUN_IDS)
        poll(lambda: redis_client.hget(running.worker.key, "state") == b"idle")


def test_the_channel_of_commands_is_not_obeyed(redis_url: str, redis_client: Redis) -> None:
    engine = Recorder()
    with working(redis_url, engine) as running:
        poll(lambda: redis_client.exists(running.worker.key))
        send_shutdown_command(redis_client, running.worker.name)
        push(redis_url, RUN_IDS)
        poll(lambda: engine.taken == RUN_IDS)
        assert running.thread.is_alive()


def test_rq_shows_the_queues_and_the_workers(redis_url: str, redis_client: Redis) -> None:
    with working(redis_url, Recorder()) as running:
        poll(lambda: redis_client.hget(running.worker.key, "state") == b"idle")
        push(redis_url, ["waits"], QueueKind.BULK)
        told = subprocess.run(
            [sys.executable, "-m", "rq.cli", "info", "--url", redis_url],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    assert "t:automations" in told
    assert "1 workers" in told
    assert running.worker.name in told
    assert Worker.count(redis_client) == 0


def test_after_a_flush_the_worker_is_known_again_at_its_next_beat(
    redis_url: str, redis_client: Redis
) -> None:
    clock = ManualClock(AT)
    worker = RunWorker(replace(make_link(redis_url), clock=clock), Recorder(), StopFlag())
    worker.bootstrap()
    assert Worker.count(redis_client) == 1
    redis_client.flushdb()
    worker.heartbeat()
    assert Worker.count(redis_client) == 0
    clock.advance(timedelta(seconds=HEARTBEAT_S))
    worker.heartbeat()
    assert Worker.count(redis_client) == 1
    worker.teardown()
    assert Worker.count(redis_client) == 0


def test_the_registry_forgets_workers_that_are_gone(redis_url: str, redis_client: Redis) -> None:
    gone = RunWorker(make_link(redis_url), Recorder(), StopFlag())
    gone.bootstrap()
    redis_client.delete(gone.key)
    with working(redis_url, Recorder()) as running:
        poll(lambda: Worker.all_keys(redis_client) == [running.worker.key])


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """Give a folder for a Redis of this test's own; what runs there ends with the test."""
    folder = Path(tempfile.mkdtemp(prefix="kr-"))
    yield folder
    start_redis(folder).stop()
    shutil.rmtree(folder)


def test_a_restart_of_redis_does_not_end_the_worker(own_folder: Path) -> None:
    server = start_redis(own_folder)
    engine = Recorder()
    with capture_logs() as logs, working(server.url, engine) as running:
        push(server.url, ["before"])
        poll(lambda: engine.taken == ["before"])
        server.stop()
        poll(lambda: [line for line in logs if line["event"] == "server_lost"])
        again = start_redis(own_folder)
        assert again.url == server.url
        push(server.url, ["after"])
        poll(lambda: engine.taken == ["before", "after"], timeout_s=20)
        assert running.thread.is_alive()


def test_a_worker_starts_before_its_redis(own_folder: Path) -> None:
    server = start_redis(own_folder)
    server.stop()
    engine = Recorder()
    with working(server.url, engine):
        start_redis(own_folder)
        push(server.url, ["r1"])
        poll(lambda: engine.taken == ["r1"], timeout_s=20)


@pytest.mark.parametrize("name", ["with a space", "a=b", "ä"])
def test_the_folder_of_its_redis_may_be_called_anything(own_folder: Path, name: str) -> None:
    (own_folder / name).mkdir()
    server = start_redis(own_folder / name)
    engine = Recorder()
    with working(server.url, engine):
        push(server.url, ["r1"])
        poll(lambda: engine.taken == ["r1"])
    server.stop()
