"""Redis is away when rows come due: they fire all the same, their runs start once it is back, and once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from knockon.embedded import RedisProcess, restart_redis
from tests.delayed.past import AGO_S, apply_waiting, stands, tell_past
from tests.system.deployment import Deployment, open_deployment
from tests.waiting import poll

UNPAID = {"field": "order.paid", "op": "eq", "value": False}
ORDERS = ("o1", "o2", "o3")


@pytest.fixture
def site(own_redis: RedisProcess, database_url: str, tmp_path: Path) -> Iterator[Deployment]:
    with open_deployment(own_redis.url, database_url, tmp_path) as opened:
        yield opened


def test_what_came_due_while_redis_was_away_runs_late_and_once(
    site: Deployment, own_redis: RedisProcess
) -> None:
    trigger = {"type": "EVENT", "config": {"eventType": "order.placed"}}
    apply_waiting(site, trigger, site.hook("/unpaid"), conditions=UNPAID)
    orders = [{"subject": {"type": "order", "id": id_, "state": {"paid": False}}} for id_ in ORDERS]
    tell_past(site, *((AGO_S - 2, "order.placed", order) for order in orders))
    site.fleet.start("matcher")
    poll(lambda: len(stands(site)) == len(ORDERS), 20)
    assert set(stands(site).values()) == {("pending", None)}
    own_redis.stop()
    processes = [site.fleet.start(room) for room in ("timers", "timers")]
    poll(lambda: set(stands(site).values()) == {("executed", None)}, 30)
    assert site.statuses() == ["PENDING"] * len(ORDERS)
    restart_redis(own_redis)
    processes += [site.fleet.start(room) for room in ("worker", "watchdog")]
    site.await_ended(len(ORDERS))
    assert site.statuses() == ["SUCCEEDED"] * len(ORDERS)
    assert len(site.receiver.deliveries("/unpaid")) == len(ORDERS)
    assert all(process.is_alive() for process in processes)
