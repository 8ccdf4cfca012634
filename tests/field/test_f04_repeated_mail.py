"""A retried step repeats the mail that it sent already.

Three actions: a mail (here a notice), a page (here a record), a webhook whose endpoint answers 503 twice.
Elsewhere the whole step was done again each time, and customers got the same mail three times. Here a retry
goes on with the action that failed: what has a checkpoint is not done again.
"""

from datetime import timedelta
from typing import Any

from shared.db.types import must_instant
from tests.field.conftest import Open
from tests.field.road import NOTICE, Road

PAGE = {"type": "CREATE_RECORD", "config": {"database_id": "pages", "properties": {"title": "Hello"}}}
NAMES = ("CREATE_NOTIFICATION", "CREATE_RECORD", "SEND_WEBHOOK")


def test_a_retry_goes_on_with_the_action_that_failed(open_here: Open) -> None:
    road = open_here(script={"/hook": [503, 503, 200]})
    road.automation(NOTICE, PAGE, road.hook("/hook"), on="order.placed")
    road.publish("order.placed")
    road.rest()
    for retries, wait_s in ((1, 1), (2, 2)):
        run = road.run()
        assert (run.status, run.retry_count) == ("PENDING", retries)
        assert must_instant(run.next_attempt_at) - road.clock.now() == timedelta(seconds=wait_s)
        road.wait(wait_s - 0.001)
        assert len(road.receiver.deliveries()) == retries
        road.wait(0.001)
    run = road.run()
    assert (run.status, run.retry_count) == ("SUCCEEDED", 2)
    assert road.notices() == ["Done"]
    assert len(road.told("record.created")) == len(road.room.all("SELECT id FROM subjects")) == 1
    posts = road.receiver.deliveries("/hook")
    assert [post.status for post in posts] == [503, 503, 200]
    assert {post.webhook_id for post in posts} == {f"{run.id}:3"}
    assert {post.headers["idempotency-key"] for post in posts} == {f"{run.id}:3"}
    check_log(road, run)


def check_log(road: Road, run: Any) -> None:
    """The log shows the first two actions once, and the third three times."""
    lines = road.room.messages(run.id)
    started = [lines.count(f"action {at}/3 {name} started") for at, name in enumerate(NAMES, start=1)]
    done = [lines.count(f"action {at}/3 {name} done") for at, name in enumerate(NAMES, start=1)]
    assert (started, done) == ([1, 1, 3], [1, 1, 1])
    assert lines[-1] == "run completed"
