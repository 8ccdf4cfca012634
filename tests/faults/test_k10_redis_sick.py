"""Redis is down, full or read-only when runs are to be handed on: their rows wait, and nobody helps."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from knockon.client import EventDraft, Publisher, PublishError
from knockon.embedded import RedisProcess, start_redis
from shared.faults import FaultPoint
from shared.services.runs import ReplayFrom, replay
from tests.receiver import Script
from tests.system.account import check_account
from tests.system.deployment import CALLER, KEYS, PLACED, WORKSPACE, Deployment, open_deployment
from tests.waiting import poll

NOTE = {"type": "CREATE_NOTIFICATION", "config": {"title": "Order", "body": "{{ number }}"}}
EVENTS = 10
SICK_S = 0.6
HEALTHY_S = 0.4
Act = Callable[[RedisProcess], None]


def take_down(server: RedisProcess) -> None:
    server.stop()


def bring_up(server: RedisProcess) -> None:
    start_redis(server.home.parent)


def configured(name: str, value: str) -> Act:
    def configure(server: RedisProcess) -> None:
        with closing(Redis.from_url(server.url)) as client:
            client.config_set(name, value)

    return configure


def following(*master: str) -> Act:
    def follow(server: RedisProcess) -> None:
        client: Any
        with closing(Redis.from_url(server.url)) as client:
            client.execute_command("REPLICAOF", *master)

    return follow


@dataclass(frozen=True)
class Sickness:
    """What makes a Redis refuse, and what heals it."""

    begin: Act
    end: Act

    @contextmanager
    def of(self, server: RedisProcess) -> Iterator[None]:
        self.begin(server)
        try:
            yield
        finally:
            self.end(server)


SICKNESSES = {
    "down": Sickness(take_down, bring_up),
    "full": Sickness(configured("maxmemory", "1"), configured("maxmemory", "0")),
    "read-only": Sickness(following("127.0.0.1", "1"), following("NO", "ONE")),
}


@pytest.fixture
def site(own_redis: RedisProcess, database_url: str, tmp_path: Path) -> Iterator[Deployment]:
    with open_deployment(own_redis.url, database_url, tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("name", SICKNESSES)
def test_a_run_whose_handle_cannot_be_pushed_waits_on_its_row(
    site: Deployment, own_redis: RedisProcess, name: str
) -> None:
    site.automation(site.hook("/one"))
    matcher = site.fleet.start("matcher", fault=f"{FaultPoint.ENQUEUE_BEFORE}@1:stop")
    site.publish(EVENTS)
    poll(matcher.is_frozen)
    written = len(site.runs())
    with SICKNESSES[name].of(own_redis):
        matcher.thaw()
        poll(lambda: matcher.has_logged("outage_began"))
        worker = site.fleet.start("worker")
        assert site.statuses() == ["PENDING"] * written
        assert written > 0
        poll(lambda: worker.has_logged("worker_started"))
    site.await_ended(EVENTS)
    poll(lambda: site.backends.redis.xinfo_groups(KEYS.stream)[0]["pending"] == 0)
    check_account(site)
    assert site.outcomes() == ["succeeded"] * EVENTS
    assert matcher.has_logged("outage_ended")


@pytest.mark.parametrize("name", SICKNESSES)
def test_a_replay_is_answered_once_its_row_is_written(
    own_redis: RedisProcess, database_url: str, tmp_path: Path, name: str
) -> None:
    gone_once: Script = {"/one": [404, 200]}
    with open_deployment(own_redis.url, database_url, tmp_path, gone_once) as site:
        site.automation(site.hook("/one"))
        for room in ("matcher", "worker"):
            site.fleet.start(room)
        site.publish()
        site.await_ended(1)
        (run,) = site.runs()
        with SICKNESSES[name].of(own_redis):
            done = replay(site.backends, CALLER, [run.id], ReplayFrom.FAILED_ACTION)
            assert done.replayed == (run.id,)
            assert site.statuses() == ["PENDING"]
        site.await_ended(1)
        assert site.outcomes() == ["failed", "succeeded"]


def test_a_read_only_redis_fails_the_publishers_call(own_redis: RedisProcess) -> None:
    with Publisher(own_redis.url) as publisher:
        with SICKNESSES["read-only"].of(own_redis), pytest.raises(PublishError, match="read only"):
            publisher.publish(PLACED, WORKSPACE, {})
        assert publisher.publish(PLACED, WORKSPACE, {})


def publish_until(site: Deployment, stop: threading.Event) -> None:
    """Publish sets of events one after another; each is published again until Redis has confirmed it."""
    while not stop.wait(0.25):
        drafts = [EventDraft(PLACED, WORKSPACE, {"number": number}) for number in range(EVENTS)]
        site.published += drafts
        poll(partial(is_confirmed, site, drafts), 20)


def is_confirmed(site: Deployment, drafts: list[EventDraft]) -> bool:
    try:
        site.publisher.publish_many(drafts)
    except PublishError:
        return False
    return True


def test_a_redis_that_falls_ill_again_and_again_loses_and_doubles_nothing(
    site: Deployment, own_redis: RedisProcess
) -> None:
    site.automation(site.hook("/one"), NOTE)
    for room in ("matcher", "worker", "scheduler"):
        site.fleet.start(room)
    stop = threading.Event()
    pause = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(publish_until, site, stop)
        for sickness in SICKNESSES.values():
            pause.wait(HEALTHY_S)
            with sickness.of(own_redis):
                pause.wait(SICK_S)
        pause.wait(HEALTHY_S)
        stop.set()
        publishing.result(30)
    site.await_ended(len(site.published))
    check_account(site)
    assert set(site.statuses()) == {"SUCCEEDED"}
    assert set(site.outcomes()) == {"succeeded"}
