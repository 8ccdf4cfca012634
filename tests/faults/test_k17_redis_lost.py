"""Redis dies while runs are under way and comes back empty: the rows know all of them, and each one ends."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from redis import Redis

from knockon.embedded import RedisProcess, find_redis, start_redis
from shared.errors import ConfigError
from tests.receiver import Script, Step
from tests.system.account import check_account
from tests.system.deployment import Deployment, open_deployment
from tests.waiting import poll

NOTE = {"type": "CREATE_NOTIFICATION", "config": {"title": "Order", "body": "{{ number }}"}}
WAITING = 200
EVENTS = 30
CLAIMED_AT_MOST = 10  # a worker's first claim: its five permits, and as many in hand
SLOW: Script = {"/one": [*[Step(after_s=3)] * 5, Step()]}


@pytest.fixture
def site(own_redis: RedisProcess, database_url: str, tmp_path: Path) -> Iterator[Deployment]:
    with open_deployment(own_redis.url, database_url, tmp_path, SLOW) as opened:
        yield opened


def is_gone(folder: Path) -> bool:
    try:
        return find_redis(folder) is None
    except ConfigError:  # it died while it was asked
        return False


def come_back_empty(server: RedisProcess) -> None:
    """Kill a Redis and start it again without what it had on disk."""
    folder = server.home.parent
    os.kill(server.pid, signal.SIGKILL)
    poll(lambda: is_gone(folder))
    for kept in server.home.glob("*"):
        if kept.name.startswith(("appendonly", "dump")):
            shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
    assert start_redis(folder).url == server.url


def test_runs_under_way_end_and_those_that_wait_are_found(site: Deployment, own_redis: RedisProcess) -> None:
    site.automation(site.hook("/one"), site.hook("/two"))
    matcher = site.fleet.start("matcher")
    worker = site.fleet.start("worker")
    site.publish(EVENTS)
    site.await_status("PENDING", EVENTS - CLAIMED_AT_MOST)
    site.await_delivery("/one", 5)
    come_back_empty(own_redis)
    site.await_ended(EVENTS)
    site.publish()
    site.await_ended(EVENTS + 1)
    check_account(site)
    assert site.outcomes() == ["succeeded"] * (EVENTS + 1)
    assert worker.is_alive()
    assert matcher.is_alive()


def test_runs_survive_the_loss_of_all_of_redis(site: Deployment, own_redis: RedisProcess) -> None:
    site.automation(NOTE)
    site.fleet.start("matcher")
    site.publish(WAITING)
    site.await_status("PENDING", WAITING)
    with closing(Redis.from_url(own_redis.url)) as client:
        client.flushall()
    site.fleet.start("worker")
    site.await_ended(WAITING)
    site.publish()
    site.await_ended(WAITING + 1)
    check_account(site)
    assert site.statuses() == ["SUCCEEDED"] * (WAITING + 1)
    assert site.one("SELECT COUNT(*) AS notices FROM notifications").notices == WAITING + 1
