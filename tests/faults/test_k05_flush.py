"""Redis loses the stream and its group under running matchers: they make both anew, from the beginning."""

import time
from typing import Any

from shared.faults import FaultPoint
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.system.deployment import KEYS
from tests.system.fleet import Process
from tests.waiting import poll

WATCHED_S = 1.5
BUSY_MOST = 0.1
LINES_PER_S = 5


def cpu_s(process: Process) -> float:
    """Give the processor seconds that a process has used."""
    with open(f"/proc/{process.pid}/stat") as file:  # noqa: PTH123 - a line of the kernel's
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_a_flush_under_matchers_loses_nothing_that_follows(opened: Opener) -> None:
    site = opened(CLAIM_IDLE_S=60)
    site.automation(site.hook("/one"))
    busy = site.fleet.start("matcher", fault=f"{FaultPoint.MATCH_AFTER_READ}:sleep:1")
    poll(lambda: busy.has_logged("group_created"))
    before = site.publish()
    poll(lambda: site.backends.redis.xinfo_groups(KEYS.stream)[0]["pending"] == 1)
    waiting = site.fleet.start("matcher")
    client: Any = site.backends.redis
    number = str(client.connection_pool.connection_kwargs["db"])
    poll(lambda: any(each["cmd"] == "xreadgroup" and each["db"] == number for each in client.client_list()))
    client.flushdb()
    site.publish()
    site.await_status("PENDING", 2)
    site.publisher.publish_many(before)
    poll(lambda: int(client.get(KEYS.skipped("deduped")) or 0) == 1)
    site.fleet.start("worker")
    site.await_ended(2)
    check_account(site)
    assert sum(line["event"] == "group_created" for each in (busy, waiting) for line in each.lines()) == 2


def test_matchers_whose_stream_is_gone_stay_calm(opened: Opener) -> None:
    site = opened()
    matchers = [site.fleet.start("matcher") for _ in range(2)]
    poll(lambda: all(each.has_logged("matcher_started") for each in matchers))
    poll(lambda: site.backends.redis.exists(KEYS.stream))
    used = [cpu_s(each) for each in matchers]
    said = [len(each.lines()) for each in matchers]
    began = time.monotonic()
    site.backends.redis.delete(KEYS.stream)
    poll(lambda: time.monotonic() > began + WATCHED_S)
    took_s = time.monotonic() - began
    assert all(cpu_s(each) - at < BUSY_MOST * took_s for each, at in zip(matchers, used, strict=True))
    assert all(len(each.lines()) - at < LINES_PER_S * took_s for each, at in zip(matchers, said, strict=True))
    assert site.backends.redis.exists(KEYS.stream)
