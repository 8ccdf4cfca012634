"""`knockon up` as people use it: real processes, real servers, killed and stopped."""

import os
import re
import signal
import socket
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from knockon.embedded import find_redis
from tests.system.commands import Home, Started
from tests.waiting import poll

AUTOMATIONS = """
- key: welcome
  name: Welcome
  trigger: {type: EVENT, config: {eventType: order.placed}}
  actions: [{type: CREATE_NOTIFICATION, config: {title: Hello}}]
"""
ROOMS = {"matcher", "worker", "scheduler", "timers", "watchdog", "api"}


@pytest.fixture
def embedded(tmp_path: Path) -> Home:
    """Give a folder where nothing is set."""
    return Home(tmp_path / "home", {})


@pytest.fixture(params=["embedded", "given"])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """Give a folder where nothing is set, and one where both servers are named."""
    if request.param == "embedded":
        return Home(tmp_path / "home", {})
    servers = {
        "DATABASE_URL": request.getfixturevalue("postgres_url"),
        "REDIS_URL": request.getfixturevalue("redis_url"),
    }
    return Home(tmp_path / "home", servers)


def publish_and_await(deployment: Home, event_id: str) -> dict[str, Any]:
    """Publish an event and wait until its run has ended."""
    before = len(deployment.ask("runs", "list"))
    deployment.run("publish", "order.placed", "--id", event_id)
    newest = poll(lambda: (deployment.ask("runs", "list")[: -before or None] or [{}])[0].get("ended_at"), 60)
    assert newest
    run: dict[str, Any] = deployment.ask("runs", "list")[0]
    return run


def readiness(url: str) -> str:
    """Ask an API whether it serves; it may not listen yet."""
    try:
        return str(httpx2.get(f"{url}/readyz", trust_env=False).json()["status"])
    except httpx2.TransportError:
        return ""


def is_over(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_an_event_runs_an_automation_and_everything_stops_in_order(deployment: Home) -> None:
    (deployment.folder / "automations.yaml").write_text(AUTOMATIONS)
    with deployment.started("up") as up:
        up.await_line("knockon tail")
        assert "kn_live_" in up.said()
        assert "runs in" in deployment.run("up", code=1)
        deployment.run("apply", "-f", "automations.yaml")
        assert publish_and_await(deployment, "one")["status"] == "SUCCEEDED"
        rooms = poll(lambda: up.rooms() if up.rooms().keys() == ROOMS else {})
        (url,) = re.findall(r"the API is at (http://127\.0\.0\.1:\d+)", up.said())
        assert poll(lambda: readiness(url), 30) == "ok"
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(60) == 0
        assert all(is_over(process) for process in rooms.values())
    assert find_redis(deployment.folder / ".knockon") is None
    assert "worker_stopped" in up.said()
    assert up.said().endswith("stopped\n")
    assert "Traceback" not in up.said()


def test_a_taken_port_stops_the_start_with_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        home = Home(tmp_path / "home", {"API_PORT": str(port)})
        said = home.run("up", code=1)
    assert said.splitlines() == [
        f"error: API_PORT: cannot listen on 127.0.0.1, port {port}: Address already in use"
    ]
    assert find_redis(home.folder / ".knockon") is None


def test_a_process_that_dies_is_started_again(embedded: Home) -> None:
    (embedded.folder / "automations.yaml").write_text(AUTOMATIONS)
    with embedded.started("up") as up:
        up.await_line("worker_started")
        embedded.run("apply", "-f", "automations.yaml")
        victims = [up.rooms()[room] for room in ("worker", "matcher")]
        for victim in victims:
            victim.kill()
        up.await_line("was killed by signal 9; it is started again in 1 s")
        poll(lambda: up.rooms().keys() == ROOMS and up.rooms()["worker"].pid != victims[0].pid)
        assert publish_and_await(embedded, "two")["status"] == "SUCCEEDED"


def test_its_redis_is_started_again_when_it_dies(embedded: Home) -> None:
    (embedded.folder / "automations.yaml").write_text(AUTOMATIONS)
    with embedded.started("up") as up:
        up.await_line("worker_started")
        embedded.run("apply", "-f", "automations.yaml")
        redis = find_redis(embedded.folder / ".knockon")
        assert redis
        os.kill(redis.pid, signal.SIGKILL)
        up.await_line("redis      | runs again")
        assert publish_and_await(embedded, "four")["status"] == "SUCCEEDED"
        stop_politely(up)


def test_without_a_redis_that_can_be_started_it_ends(embedded: Home) -> None:
    with embedded.started("up") as up:
        up.await_line("worker_started")
        redis = find_redis(embedded.folder / ".knockon")
        assert redis
        (redis.home / "redis.conf").write_text("nonsense 1\n")
        os.kill(redis.pid, signal.SIGKILL)
        assert up.process.wait(60) == 1
        assert "redis      | cannot be kept running: redis-server ended at once" in up.said()
        assert "Traceback" not in up.said()


def test_a_terminal_that_goes_away_stops_everything_in_order(embedded: Home) -> None:
    with embedded.started("up") as up:
        up.await_line("worker_started")
        rooms = poll(lambda: up.rooms() if up.rooms().keys() == ROOMS else {})
        up.process.send_signal(signal.SIGHUP)
        assert up.process.wait(60) == 0
        assert all(is_over(process) for process in rooms.values())
    assert find_redis(embedded.folder / ".knockon") is None


def test_no_process_outlives_its_supervisor_and_the_next_one_goes_on(embedded: Home) -> None:
    (embedded.folder / "automations.yaml").write_text(AUTOMATIONS)
    with embedded.started("up") as up:
        up.await_line("worker_started")
        embedded.run("apply", "-f", "automations.yaml")
        rooms = poll(lambda: up.rooms() if up.rooms().keys() == ROOMS else {})
        up.process.kill()
        poll(lambda: all(is_over(process) for process in rooms.values()), 60)
        assert find_redis(embedded.folder / ".knockon")
        embedded.run("publish", "order.placed")
        with embedded.started("up", "--workers", "2") as again:
            poll(lambda: [run["status"] for run in embedded.ask("runs", "list")] == ["SUCCEEDED"], 60)
            stop_politely(again)


def test_tail_follows_and_ends_well_on_an_interrupt(embedded: Home) -> None:
    (embedded.folder / "automations.yaml").write_text(AUTOMATIONS)
    with embedded.started("up") as up:
        up.await_line("knockon tail")
        embedded.run("apply", "-f", "automations.yaml")
        with embedded.started("tail", "--automation", "welcome") as tail:
            publish_and_await(embedded, "three")
            tail.await_line("run completed")
            tail.process.send_signal(signal.SIGINT)
            assert tail.process.wait(30) == 0
        stop_politely(up)


def stop_politely(started: Started) -> None:
    """Ask a command to end as Ctrl-C does, and wait for it."""
    started.process.send_signal(signal.SIGINT)
    assert started.process.wait(60) == 0
