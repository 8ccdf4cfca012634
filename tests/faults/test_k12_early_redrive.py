"""A run's next attempt is due while the handle of the one before is still there: it is driven.

Handles have ids of their own, so that neither takes the other away.
"""

from collections import Counter

from redis import Redis

from shared.faults import FaultPoint
from shared.model.runs import QueueKind
from tests.receiver import Script
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.system.deployment import KEYS
from tests.waiting import poll

QUEUE = f"rq:queue:{KEYS.queue(QueueKind.MAIN)}"
HELD_S = 6


def test_an_attempt_is_made_while_the_handle_of_the_one_before_still_stands(
    opened: Opener, redis_client: Redis
) -> None:
    refused_once: Script = {"/one": [503, 200]}
    site = opened(script=refused_once)
    site.automation(site.hook("/one"))
    site.fleet.start("matcher")
    site.fleet.start("scheduler")
    holder = site.fleet.start("worker", fault=f"{FaultPoint.HANDLE_BEFORE_ACK}@1:sleep:{HELD_S}")
    site.publish()
    site.await_delivery("/one")
    site.fleet.start("worker")
    site.await_ended(1)
    assert redis_client.exists(f"{QUEUE}:intermediate")
    assert site.outcomes() == ["failed", "succeeded"]
    check_account(site)
    poll(lambda: not redis_client.exists(QUEUE, f"{QUEUE}:intermediate"), 20)
    assert list(redis_client.scan_iter("rq:job:*")) == []
    assert Counter(each.status for each in site.receiver.deliveries()) == {503: 1, 200: 1}
    assert holder.is_alive()
