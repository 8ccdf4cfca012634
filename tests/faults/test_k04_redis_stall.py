"""Redis carries a command out and its answer comes too late or never: nothing is lost, and little is doubled.

A client that repeats on its own would double what it sent, so ours sends once and lets what is on rows and
in the pending list decide. At most one handle and one entry are doubled, and never a run.
"""

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from rq.job import Job

from knockon.client import EventDraft, PublishError
from knockon.embedded import RedisProcess
from shared.model.runs import QueueKind
from shared.queue import decode_handle
from tests.faults.lossy import LossyRedis
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.system.deployment import KEYS, PLACED, WORKSPACE, Deployment, open_deployment
from tests.waiting import poll

EVENTS = 10
MATCHER = {"the read": b"XREADGROUP", "the marks": b"\nSET\r", "the acknowledgement": b"XACK"}
WORKER = {"the taking of a handle": b"LMOVE", "the removal of a handle": b"UNLINK", "an event": b"XADD"}
SEEN = "order.seen"


def is_all_acknowledged(site: Deployment) -> bool:
    (group,) = site.backends.redis.xinfo_groups(KEYS.stream)
    last: bytes = site.backends.redis.xrevrange(KEYS.stream, count=1)[0][0]
    return group["pending"] == 0 and group["last-delivered-id"] == last


def copies(site: Deployment) -> Counter[bytes]:
    """Count the entries of each event."""
    return Counter(fields[b"id"] for _, fields in site.backends.redis.xrange(KEYS.stream))


def handles(site: Deployment) -> Counter[str]:
    """Count the handles in which each run stands."""
    client: Any = site.backends.redis
    ids = [each.decode() for each in client.lrange(f"rq:queue:{KEYS.queue(QueueKind.MAIN)}", 0, -1)]
    found = [decode_handle(each, client.hgetall(Job.key_for(each))) for each in ids]
    return Counter(run_id for handle in found for run_id in handle.run_ids)


@pytest.mark.parametrize("answer", MATCHER)
def test_a_matcher_that_does_not_hear_an_answer_loses_and_doubles_no_run(
    opened: Opener, lossy: LossyRedis, answer: str
) -> None:
    site = opened()
    site.automation(site.hook("/one"))
    matcher = site.fleet.start("matcher", REDIS_URL=lossy.url)
    poll(lambda: site.backends.redis.exists(KEYS.stream))
    lossy.lose(MATCHER[answer])
    site.publish(EVENTS)
    assert lossy.lost.wait(10)
    poll(lambda: matcher.has_logged("outage_ended"))
    poll(lambda: is_all_acknowledged(site))
    assert len(site.runs()) == EVENTS
    assert max(handles(site).values()) <= 2
    site.fleet.start("worker")
    site.await_ended(EVENTS)
    check_account(site)
    assert int(site.backends.redis.get(KEYS.skipped("deduped")) or 0) == 0


@pytest.mark.parametrize("answer", WORKER)
def test_a_worker_that_does_not_hear_an_answer_loses_and_doubles_no_run(
    opened: Opener, lossy: LossyRedis, answer: str
) -> None:
    site = opened()
    site.automation(site.hook("/one"), {"type": "EMIT_EVENT", "config": {"event_type": SEEN}})
    site.automation(site.hook("/seen"), on=SEEN)
    site.fleet.start("matcher")
    worker = site.fleet.start("worker", REDIS_URL=lossy.url)
    poll(lambda: worker.has_logged("worker_started"))
    lossy.lose(WORKER[answer])
    site.publish()
    assert lossy.lost.wait(10)
    site.await_ended(2)
    check_account(site)
    assert site.outcomes() == ["succeeded"] * 2
    assert max(copies(site).values()) <= 2
    assert worker.is_alive()


def test_a_publisher_whose_call_failed_has_put_its_event_there_at_most_twice(
    own_redis: RedisProcess, database_url: str, tmp_path: Path
) -> None:
    url = f"{own_redis.url}&socket_timeout=1.5"
    with open_deployment(url, database_url, tmp_path) as site:
        site.automation(site.hook("/one"))
        matcher = site.fleet.start("matcher")
        worker = site.fleet.start("worker")
        site.publish(EVENTS)
        site.await_ended(EVENTS)
        draft = EventDraft(PLACED, WORKSPACE, {})
        os.kill(own_redis.pid, signal.SIGSTOP)
        try:
            with pytest.raises(PublishError):
                site.publisher.publish_many([draft])
            poll(lambda: matcher.has_logged("outage_began") and worker.has_logged("server_lost"))
        finally:
            os.kill(own_redis.pid, signal.SIGCONT)
        site.published.append(draft)
        with Redis.from_url(own_redis.url) as client:
            poll(lambda: client.xlen(KEYS.stream) > EVENTS)
        site.await_ended(EVENTS + 1)
        assert max(copies(site).values()) <= 2
        site.publisher.publish_many([draft])
        poll(lambda: is_all_acknowledged(site))
        check_account(site)
        assert site.statuses() == ["SUCCEEDED"] * (EVENTS + 1)
