"""The dedupe mark is written, the work is not.

The process dies, or SQL refuses, between the mark and the row. Elsewhere the sender's repeat was then
answered "duplicate", and a paid order was never processed: no dead letter, no log. Here the mark only hints;
the row decides, and an entry is not acknowledged before its row exists.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError

from matcher.intake import Intake
from matcher.stream import Stream
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from tests.field.road import NOTICE, Road
from tests.matching import Post
from watchdog.lost_handles import requeue_lost

RETENTION = timedelta(days=36_500)


def revived(road: Road) -> Post:
    """Give a matcher that was started after another one died, and has taken over what that one left."""
    backends = road.post.backends
    post = Post(backends, Stream(backends.redis, backends.keys, "c2"), Intake(backends, RETENTION))
    post.intake.take(post.stream.reclaim(100, timedelta()))
    return post


@contextmanager
def without_runs(road: Road) -> Iterator[None]:
    """Let SQL know no table of runs."""
    for name, other in (("automation_runs", "elsewhere"), ("elsewhere", "automation_runs")):
        with road.room.database.begin() as conn:
            conn.exec_driver_sql(f"ALTER TABLE {name} RENAME TO {other}")
        if other == "elsewhere":
            yield


@contextmanager
def without_pushing(road: Road, redis_url: str) -> Iterator[Post]:
    """Give a matcher whose Redis takes everything from it but handles."""
    user = f"reader-{redis_url.rpartition('=')[2]}"
    client: Any = Redis.from_url(redis_url)
    with closing(client):
        client.acl_setuser(
            user, enabled=True, nopass=True, keys="*", channels="*", commands=["+@all", "-rpush"]
        )
        limited = open_redis(redis_url.replace("://", f"://{user}:any@", 1))
        with closing(limited):
            keys = road.post.backends.keys
            backends = replace(road.post.backends, redis=limited, queue=HandleQueue(limited, keys))
            yield Post(backends, Stream(limited, keys, "c1"), Intake(backends, RETENTION))
        client.acl_deluser(user)


def marked(road: Road, automation_id: str, entry_id: str) -> bool:
    name = road.post.backends.keys.dedupe(automation_id, f"entry:{entry_id}")
    return road.post.backends.redis.get(name) == entry_id.encode()


def test_a_mark_whose_row_was_never_written_loses_nothing(road: Road) -> None:
    a1 = road.automation(NOTICE, on="order.placed")
    road.go()
    entry_id = road.publish("order.placed")
    with without_runs(road), pytest.raises(DBAPIError):
        road.post.step()
    assert marked(road, a1, entry_id)
    assert (road.post.pending(), road.runs()) == (1, [])
    revived(road)
    road.rest()
    assert (road.post.pending(), road.ends()) == (0, ["SUCCEEDED"])
    assert road.run().entry_id == entry_id
    assert road.post.skipped("deduped") == 0


def test_a_row_whose_handle_was_refused_is_handed_on_with_the_next_delivery(
    road: Road, redis_url: str
) -> None:
    road.automation(NOTICE, on="order.placed")
    road.publish("order.placed")
    with without_pushing(road, redis_url) as post, pytest.raises(RedisError):
        post.step()
    assert (road.post.pending(), road.ends(), road.post.handled()) == (1, ["PENDING"], [])
    revived(road)
    road.rest()
    run = road.run()
    assert (run.status, run.retry_count, road.post.pending()) == ("SUCCEEDED", 0, 0)
    assert road.post.skipped("deduped") == 0


def test_a_row_whose_handle_was_lost_is_woken_by_the_watchdog(road: Road) -> None:
    road.automation(NOTICE, on="order.placed")
    road.publish("order.placed")
    road.post.step()
    (handle,) = road.post.backends.redis.lrange("rq:queue:automations", 0, -1)
    client: Any = road.post.backends.redis
    client.delete("rq:queue:automations", f"rq:job:{handle.decode()}")
    road.rest()
    assert road.ends() == ["PENDING"]
    road.clock.advance(timedelta(seconds=31))
    requeue_lost(road.watchdog())
    road.rest()
    run = road.run()
    assert (run.status, run.retry_count) == ("SUCCEEDED", 0)


def test_a_redis_that_lost_its_marks_between_two_deliveries_makes_no_second_row(road: Road) -> None:
    road.automation(NOTICE, on="order.placed")
    entry_id = road.publish("order.placed")
    road.rest()
    client: Any = road.post.backends.redis
    ((_, fields),) = client.xrange(road.post.backends.keys.stream, entry_id, entry_id)
    client.flushdb()
    road.post.stream.join()
    client.xadd(road.post.backends.keys.stream, fields, id=entry_id)
    road.post.step()
    assert (road.ends(), road.post.handled(), road.post.pending()) == (["SUCCEEDED"], [], 0)
    assert len(road.notices()) == 1
