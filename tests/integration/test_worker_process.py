"""The worker as a process, with its real engine: what a signal, a kill and a second worker do to its runs."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis
from rq.worker import Worker

from shared.errors import SettingsError
from shared.model.runs import QueueKind
from shared.settings import Settings
from tests.receiver import Receiver, Step, read_ledger
from tests.rooms import HOOK, NOTIFY, Room, open_room
from tests.waiting import poll
from worker.service import serve

ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "from shared.settings import load_settings; from shared.logs import configure_logs;"
    " from shared.process import leave; from worker.service import serve;"
    " settings = load_settings(); configure_logs(settings); leave(serve(settings))"
)

SHORT = {
    "RUN_LEASE_S": "2",
    "LEASE_RENEW_S": "1",
    "WATCHDOG_LEASES_S": "0.5",
    "WATCHDOG_HANDLES_S": "1",
}

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def room(redis_url: str, database_url: str) -> Iterator[Room]:
    opened = open_room(redis_url, database_url)
    yield opened
    opened.database.dispose()
    opened.parts.redis.close()


@pytest.fixture
def start(redis_url: str, database_url: str, tmp_path: Path) -> Iterator[Start]:
    """Start workers; what still runs at the end of the test is killed."""
    processes: list[subprocess.Popen[bytes]] = []

    def started(**variables: str) -> subprocess.Popen[bytes]:
        given = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "WEBHOOK_ALLOW_PRIVATE": "true"}
        environment = {**os.environ, **given, **variables, "PYTHONPATH": str(ROOT)}
        processes.append(subprocess.Popen([sys.executable, "-c", CODE], env=environment, cwd=tmp_path))
        return processes[-1]

    yield started
    for process in processes:
        process.kill()
        process.wait()


def push(room: Room, run_ids: list[str]) -> None:
    room.parts.queue.push(QueueKind.MAIN, run_ids, room.parts.clock.now())


def statuses(room: Room, run_ids: list[str]) -> set[str]:
    return {room.status(run_id) for run_id in run_ids}


def hook(receiver: Receiver, path: str = "/hook") -> dict[str, object]:
    return {**HOOK, "config": {"url": receiver.url(path)}}


def test_runs_end_and_the_process_ends_when_asked(room: Room, start: Start, redis_client: Redis) -> None:
    room.owner()
    run_ids = room.runs(room.automation(NOTIFY), [{"name": str(n)} for n in range(120)])
    process = start()
    push(room, run_ids)
    poll(lambda: statuses(room, run_ids) == {"SUCCEEDED"}, timeout_s=30)
    assert room.one("SELECT count(*) AS n FROM notifications").n == 120
    assert Worker.count(redis_client) == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0
    assert Worker.count(redis_client) == 0
    assert room.parts.queue.depth(QueueKind.MAIN) == 0


def test_a_worker_killed_before_it_acknowledged_leaves_the_handle_to_the_next(
    room: Room, start: Start, redis_client: Redis
) -> None:
    room.owner()
    run_ids = room.runs(room.automation(NOTIFY), [{"name": "a"}, {"name": "b"}])
    push(room, run_ids)
    process = start(**SHORT, KNOCKON_FAULT="handle.before_ack:kill9")
    assert process.wait(30) == -signal.SIGKILL
    assert redis_client.llen("rq:queue:automations:intermediate") == 1
    start(**SHORT)
    poll(lambda: statuses(room, run_ids) == {"SUCCEEDED"}, timeout_s=40)
    assert room.one("SELECT count(*) AS n FROM notifications").n == 2


def test_at_a_signal_nothing_more_is_begun_and_what_hangs_goes_back_unblamed(
    room: Room, start: Start, tmp_path: Path, redis_client: Redis
) -> None:
    with Receiver(tmp_path / "ledger", {"/slow": [Step(after_s=20)]}) as receiver:
        run_ids = room.runs(room.automation(hook(receiver, "/slow")), [{}, {}, {}])
        process = start(AUTOMATIONS_WORKER_CONCURRENCY="1", SHUTDOWN_GRACE_S="1")
        push(room, run_ids)
        poll(lambda: receiver.connections > 0, timeout_s=30)
        process.send_signal(signal.SIGTERM)
        poll(lambda: Worker.count(redis_client) == 0)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
    rows = [room.row(run_id) for run_id in run_ids]
    assert {(row.status, row.retry_count, row.crash_count) for row in rows} == {("PENDING", 0, 0)}
    assert receiver.connections == 1


def test_webhooks_go_out_once_with_two_workers(room: Room, start: Start, tmp_path: Path) -> None:
    with Receiver(tmp_path / "ledger") as receiver:
        run_ids = room.runs(room.automation(hook(receiver)), [{"n": n} for n in range(40)])
        start()
        start()
        for _ in range(3):
            push(room, run_ids)
        poll(lambda: statuses(room, run_ids) == {"SUCCEEDED"}, timeout_s=30)
    sent = [delivery.run_id for delivery in read_ledger(tmp_path / "ledger")]
    assert sorted(sent) == sorted(run_ids)


def test_it_needs_both_addresses() -> None:
    with pytest.raises(SettingsError, match="DATABASE_URL"):
        serve(Settings(_env_file=None))
