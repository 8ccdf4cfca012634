"""The scheduler on a real Redis: every retry is handed over once, whoever else schedules or dies."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from knockon.embedded import start_redis
from shared.errors import SettingsError
from shared.model.runs import QueueKind
from shared.process import StopFlag
from shared.queue import HANDLE_SIZE, HandleQueue, decode_handle
from shared.redis_port import open_redis
from shared.settings import Settings
from shared.time.clock import ManualClock
from tests.listening import capture_logs
from tests.waiting import poll
from tests.worker_stage import AT, KEYS, LISTS, make_link
from worker.scheduler import RetryScheduler
from worker.service import serve_scheduler

ROOT = Path(__file__).resolve().parents[2]
ASIDE = f"{KEYS.scheduled}:bad"


def schedule(redis_url: str, waits: Sequence[tuple[QueueKind, str, datetime]]) -> None:
    """Enter retries as the pipeline does."""
    client = open_redis(redis_url)
    with client.pipeline(transaction=True) as pipe:
        HandleQueue(client, KEYS).schedule_in(pipe, waits)
        pipe.execute()
    client.close()


def handed_over(client: Any, kind: QueueKind = QueueKind.MAIN) -> list[tuple[str, ...]]:
    """Read the handles of a queue."""
    ids = [member.decode() for member in client.lrange(LISTS[kind], 0, -1)]
    return [decode_handle(found, client.hgetall(f"rq:job:{found}")).run_ids for found in ids]


def flat(client: Any, kind: QueueKind = QueueKind.MAIN) -> list[str]:
    return [run_id for run_ids in handed_over(client, kind) for run_id in run_ids]


@contextmanager
def scheduling(redis_url: str, count: int = 1) -> Iterator[list[threading.Thread]]:
    """Run schedulers until the block ends."""
    stop = StopFlag()
    schedulers = [RetryScheduler(make_link(redis_url), stop) for _ in range(count)]
    threads = [threading.Thread(target=each.run, daemon=True) for each in schedulers]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        stop.raise_()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()


def soon(milliseconds: int = 0) -> datetime:
    return datetime.now(UTC) + timedelta(milliseconds=milliseconds)


def one_pass(redis_url: str, clock: ManualClock) -> int:
    scheduler = RetryScheduler(replace(make_link(redis_url), clock=clock), StopFlag())
    assert scheduler.acquire_lock()
    count: int = scheduler.enqueue_jobs()
    scheduler.remove_lock()
    return count


def test_two_schedulers_hand_over_200_entries_once_each(redis_url: str, redis_client: Redis) -> None:
    run_ids = [f"r{n}" for n in range(200)]
    schedule(redis_url, [(QueueKind.MAIN, run_id, soon(5 * n)) for n, run_id in enumerate(run_ids)])
    with scheduling(redis_url, count=2):
        poll(lambda: redis_client.zcard(KEYS.scheduled) == 0)
    assert Counter(flat(redis_client)) == Counter(run_ids)
    assert redis_client.exists(f"{KEYS.scheduler}_lock") == 0


def test_what_is_due_is_handed_over_and_what_is_not_waits(redis_url: str, redis_client: Redis) -> None:
    clock = ManualClock(AT)
    moment = timedelta(milliseconds=10)
    schedule(redis_url, [(QueueKind.MAIN, "due", AT), (QueueKind.MAIN, "waits", AT + moment)])
    assert one_pass(redis_url, clock) == 1
    assert flat(redis_client) == ["due"]
    clock.advance(moment)
    assert one_pass(redis_url, clock) == 1
    assert flat(redis_client) == ["due", "waits"]
    assert one_pass(redis_url, clock) == 0


def test_each_kind_goes_to_its_queue_in_handles_of_fifty(redis_url: str, redis_client: Redis) -> None:
    waits = [(kind, f"{kind}{n}", AT) for kind in QueueKind for n in range(60)]
    schedule(redis_url, waits)
    assert one_pass(redis_url, ManualClock(AT)) == 120
    for kind in QueueKind:
        handles = handed_over(redis_client, kind)
        assert [len(run_ids) for run_ids in handles] == [HANDLE_SIZE, 10]
        assert set(flat(redis_client, kind)) == {f"{kind}{n}" for n in range(60)}
    assert redis_client.sismember("rq:queues", LISTS[QueueKind.BULK])


def test_bad_entries_are_set_aside_and_the_others_go_on(redis_url: str, redis_client: Redis) -> None:
    bad = [b"\xff\xfe", b"", b"main-", b"other-r1", b"rq-job-id", b"main-r 1", b"main-" + b"r" * 65]
    redis_client.zadd(KEYS.scheduled, {member: n for n, member in enumerate(bad)})
    schedule(redis_url, [(QueueKind.MAIN, "good", AT)])
    with capture_logs() as logs:
        assert one_pass(redis_url, ManualClock(AT)) == len(bad) + 1
    assert flat(redis_client) == ["good"]
    assert redis_client.zrange(ASIDE, 0, -1) == bad
    assert redis_client.zcard(KEYS.scheduled) == 0
    assert [line["count"] for line in logs if line["event"] == "scheduler_entries_set_aside"] == [len(bad)]


def test_what_is_set_aside_stays_bounded(redis_url: str, redis_client: Redis) -> None:
    redis_client.zadd(KEYS.scheduled, {f"x{n}": n for n in range(1200)})
    assert one_pass(redis_url, ManualClock(AT)) == 1000
    assert one_pass(redis_url, ManualClock(AT)) == 200
    assert redis_client.zcard(ASIDE) == 1000


def test_without_the_lock_nothing_is_handed_over(redis_url: str, redis_client: Redis) -> None:
    schedule(redis_url, [(QueueKind.MAIN, "r1", AT)])
    first, second = (RetryScheduler(make_link(redis_url), StopFlag()) for _ in range(2))
    assert first.acquire_lock()
    assert not second.acquire_lock()
    assert second.enqueue_jobs() == 0
    second.remove_lock()
    assert first.enqueue_jobs() == 1
    first.remove_lock()
    assert second.acquire_lock()


def test_a_lock_that_is_lost_in_the_middle_of_a_pass_changes_nothing(
    redis_url: str, redis_client: Redis
) -> None:
    class Late(ManualClock):
        """A clock that is read while another scheduler takes the lock."""

        def now(self) -> datetime:
            redis_client.set(f"{KEYS.scheduler}_lock", "another")
            return super().now()

    schedule(redis_url, [(QueueKind.MAIN, "r1", AT)])
    assert one_pass(redis_url, Late(AT)) == 0
    assert redis_client.zcard(KEYS.scheduled) == 1
    assert handed_over(redis_client) == []
    assert redis_client.get(f"{KEYS.scheduler}_lock") == b"another"


def test_a_wrong_type_costs_passes_and_not_the_loop(redis_url: str, redis_client: Redis) -> None:
    redis_client.set(KEYS.scheduled, "x")
    with capture_logs() as logs, scheduling(redis_url) as threads:
        poll(lambda: [line for line in logs if line["event"] == "server_lost"])
        redis_client.delete(KEYS.scheduled)
        schedule(redis_url, [(QueueKind.MAIN, "r1", soon())])
        poll(lambda: flat(redis_client) == ["r1"])
        assert threads[0].is_alive()


def start_process(folder: Path, redis_url: str, fault: str) -> subprocess.Popen[bytes]:
    code = (
        "import sys; from shared.settings import load_settings; from worker.service import serve_scheduler;"
    )
    code += " sys.exit(serve_scheduler(load_settings()))"
    variables = {"REDIS_URL": redis_url, "KNOCKON_PREFIX": KEYS.prefix, "KNOCKON_FAULT": fault}
    environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=folder)


def test_another_takes_over_from_one_that_was_killed_with_the_lock(
    redis_url: str, redis_client: Redis, tmp_path: Path
) -> None:
    schedule(redis_url, [(QueueKind.MAIN, "r1", soon())])
    process = start_process(tmp_path, redis_url, "scheduler.before_hand_over:kill9")
    assert process.wait(30) == -signal.SIGKILL
    assert handed_over(redis_client) == []
    assert redis_client.exists(f"{KEYS.scheduler}_lock")
    with scheduling(redis_url):
        poll(lambda: flat(redis_client) == ["r1"])


def test_a_process_is_shown_hands_over_and_ends_when_asked(
    redis_url: str, redis_client: Redis, tmp_path: Path
) -> None:
    process = start_process(tmp_path, redis_url, "")
    try:
        poll(lambda: list(redis_client.scan_iter(f"{KEYS.scheduler}_instance:*")), timeout_s=20)
        schedule(redis_url, [(QueueKind.BULK, "r1", soon(50))])
        poll(lambda: flat(redis_client, QueueKind.BULK) == ["r1"])
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


def test_a_restart_of_redis_does_not_end_it() -> None:
    folder = Path(tempfile.mkdtemp(prefix="kr-"))
    try:
        url = start_redis(folder).url
        with capture_logs() as logs, scheduling(url) as threads:
            start_redis(folder).stop()
            poll(lambda: [line for line in logs if line["event"] == "server_lost"])
            start_redis(folder)
            schedule(url, [(QueueKind.MAIN, "r1", soon(100))])
            with Redis.from_url(url) as client:
                poll(lambda: flat(client) == ["r1"], timeout_s=20)
            assert threads[0].is_alive()
    finally:
        start_redis(folder).stop()
        shutil.rmtree(folder)


def test_it_needs_an_address() -> None:
    with pytest.raises(SettingsError, match="REDIS_URL"):
        serve_scheduler(Settings(_env_file=None))
