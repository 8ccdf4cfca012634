"""A delay that is longer than the claim's time-out.

Elsewhere each task that lay in the future was handed out again every hour, and all its copies ran at the due
time. Here what waits is a row and nothing else: no handle stands in a queue for it, no process holds it, and
any number of sweeps at the due time make one run.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from shared.model.runs import QueueKind
from tests.delayed.day import HOUR, MINUTE, MONDAY, Day, hour
from tests.field.conftest import Open
from timers.delayed import DelayedSweep
from watchdog.service import Watchdog

SWEEPS = 4


@pytest.fixture
def day(open_here: Open) -> Day:
    opened = Day(open_here(begins=MONDAY))
    pending = {"field": "properties.status", "op": "eq", "value": "pending"}
    opened.rule("RECORD_UPDATED", 360, opened.road.hook("/mail"), conditions=pending)
    opened.at("8:00")
    told = {"recordId": "r1", "databaseId": "d1", "properties": {"status": "pending"}}
    opened.tell("record.updated", {**told, "changedProperties": ["status"]})
    return opened


def in_queues(day: Day) -> int:
    """Count what stands in the queues, is being worked on, or is scheduled for later."""
    parts = day.road.room.parts
    waiting = sum(parts.queue.depth(kind) for kind in QueueKind)
    return waiting + parts.redis.zcard(parts.keys.scheduled)


def mails(day: Day) -> int:
    return len(day.road.receiver.deliveries("/mail"))


def test_until_it_is_due_it_is_one_row_and_in_no_queue(day: Day) -> None:
    for clock in ("9:10", "10:00", "11:20", "12:30", "13:59"):
        day.at(clock).sweep()
        Watchdog(day.road.watchdog()).tick()
        assert (day.stands(), day.row().due_at) == ([("pending", None)], hour("14:00"))
        assert (in_queues(day), day.road.runs(), mails(day)) == (0, [], 0)
    day.at("14:00").sweep()
    assert (day.stands(), len(day.road.runs()), mails(day)) == ([("executed", None)], 1, 1)
    for _ in range(12):
        day.after(HOUR).sweep()
        Watchdog(day.road.watchdog()).tick()
    assert (len(day.road.runs()), mails(day), in_queues(day)) == (1, 1, 0)


def test_four_sweeps_in_one_second_send_one_mail(day: Day) -> None:
    day.at("14:00")
    barrier = threading.Barrier(SWEEPS)
    backends = day.road.post.backends

    def sweep() -> None:
        swept = DelayedSweep(backends, 72 * HOUR)
        barrier.wait(10)
        swept.pass_once()

    with ThreadPoolExecutor(SWEEPS) as pool:
        for done in [pool.submit(sweep) for _ in range(SWEEPS)]:
            done.result(60)
    day.road.rest()
    day.after(MINUTE).sweep()
    assert (day.stands(), len(day.road.runs()), mails(day)) == ([("executed", None)], 1, 1)
