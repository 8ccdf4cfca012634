"""Handles and watchdogs may come many times. Each run happens once."""

from redis import Redis
from rq.job import Job

from shared.model.runs import QueueKind
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.system.deployment import KEYS, Deployment
from tests.waiting import poll

PUSHES = 20


def test_a_run_with_many_handles_runs_once(opened: Opener, redis_client: Redis) -> None:
    site = opened()
    site.automation(site.hook("/one"))
    matcher = site.fleet.start("matcher")
    site.publish()
    site.await_status("PENDING", 1)
    matcher.kill9()
    (run,) = site.runs()
    queue = f"rq:queue:{KEYS.queue(QueueKind.MAIN)}"
    (handle,) = redis_client.lrange(queue, 0, -1)
    for _ in range(PUSHES):
        redis_client.rpush(queue, handle)
        site.backends.queue.push(QueueKind.MAIN, [run.id], site.backends.clock.now())
    for room in ("watchdog", "watchdog", "worker", "worker", "worker", "worker"):
        site.fleet.start(room)
    site.await_ended(1)
    poll(lambda: not redis_client.exists(queue, f"{queue}:intermediate"), 20)
    check_account(site)
    assert site.outcomes() == ["succeeded"]
    assert_no_leftovers(site, redis_client)


def assert_no_leftovers(site: Deployment, client: Redis) -> None:
    """RQ's own registries know nothing of our handles, and no handle is left."""
    assert list(client.scan_iter(f"{Job.redis_job_namespace_prefix}*")) == []
    for registry in ("failed", "finished", "wip", "deferred", "scheduled"):
        assert not client.exists(f"rq:{registry}:{KEYS.queue(QueueKind.MAIN)}")
