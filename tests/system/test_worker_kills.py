"""A worker that dies anywhere: its runs go on after a lease, at the first action that is not on record."""

import signal
from collections import Counter

import pytest

from shared.faults import FaultPoint
from tests.receiver import Script, Step
from tests.system import points
from tests.system.account import check_account
from tests.system.conftest import Opener

ONCE = [str(point) for point in points.WORKER]
TWICE = [f"{point}@2" for point in points.WORKER_AGAIN]
NOTE = {"type": "CREATE_NOTIFICATION", "config": {"title": "Order", "body": "{{ number }}"}}


@pytest.mark.parametrize("point", [*ONCE, *TWICE])
def test_a_run_outlives_its_worker(opened: Opener, point: str) -> None:
    site = opened()
    site.automation(site.hook("/one"), site.hook("/two"))
    site.fleet.start("matcher")
    doomed = site.fleet.start("worker", fault=f"{point}:kill9")
    site.publish()
    assert doomed.wait() == -signal.SIGKILL
    site.fleet.start("worker")
    site.await_ended(1)
    check_account(site, repeats=1)
    (run,) = site.runs()
    assert run.status == "SUCCEEDED"
    crashed = site.outcomes().count("crashed")
    assert run.retry_count == crashed
    assert crashed == (0 if point in points.OUTBOX else 1)


def test_a_run_killed_in_its_second_action_resumes_there(opened: Opener) -> None:
    slow: Script = {"/two": [Step(after_s=60), Step()]}
    site = opened(script=slow)
    site.automation(site.hook("/one"), site.hook("/two"), site.hook("/three"))
    site.fleet.start("matcher")
    worker = site.fleet.start("worker")
    site.publish()
    site.await_delivery("/two")
    worker.kill9()
    site.fleet.start("worker")
    site.await_ended(1)
    check_account(site, repeats=1)
    (run,) = site.runs()
    assert (run.status, run.retry_count) == ("SUCCEEDED", 1)
    assert site.outcomes() == ["crashed", "succeeded"]
    calls = Counter((each.path, each.webhook_id) for each in site.receiver.deliveries())
    assert calls == {("/one", f"{run.id}:1"): 1, ("/two", f"{run.id}:2"): 2, ("/three", f"{run.id}:3"): 1}


@pytest.mark.parametrize("point", points.WORKER_AGAIN)
def test_an_effect_on_our_own_tables_happens_exactly_once(opened: Opener, point: FaultPoint) -> None:
    site = opened()
    site.automation(NOTE, NOTE)
    site.fleet.start("matcher")
    doomed = site.fleet.start("worker", fault=f"{point}:kill9")
    site.publish()
    assert doomed.wait() == -signal.SIGKILL
    site.fleet.start("worker")
    site.await_ended(1)
    check_account(site)
    assert site.statuses() == ["SUCCEEDED"]
    assert site.one("SELECT COUNT(*) AS notices FROM notifications").notices == 2


def test_a_retry_that_was_never_scheduled_is_found(opened: Opener) -> None:
    refused_once: Script = {"/two": [503, 200]}
    site = opened(script=refused_once)
    site.automation(site.hook("/one"), site.hook("/two"))
    site.fleet.start("matcher")
    doomed = site.fleet.start("worker", fault=f"{points.WORKER_RETRYING}:kill9")
    site.publish()
    assert doomed.wait() == -signal.SIGKILL
    site.fleet.start("worker")
    site.await_ended(1)
    check_account(site)
    assert site.outcomes() == ["failed", "succeeded"]
    assert len(site.receiver.deliveries("/one")) == 1


@pytest.mark.parametrize("point", sorted(points.OUTBOX))
def test_an_emitted_event_starts_its_run_once(opened: Opener, point: FaultPoint) -> None:
    site = opened()
    site.automation({"type": "EMIT_EVENT", "config": {"event_type": "order.seen"}})
    site.automation(site.hook("/seen"), on="order.seen")
    site.fleet.start("matcher")
    doomed = site.fleet.start("worker", fault=f"{point}:kill9")
    site.publish()
    assert doomed.wait() == -signal.SIGKILL
    site.fleet.start("worker")
    site.await_ended(2)
    check_account(site)
    assert site.statuses() == ["SUCCEEDED", "SUCCEEDED"]


def test_every_kill_point_is_iterated() -> None:
    others = {points.WORKER_RETRYING, points.SCHEDULER, points.WATCHDOG, points.RETENTION}
    rooms = {*points.MATCHER, *points.WORKER, *points.WORKER_AGAIN, *points.TIMERS, *points.BULK}
    rooms |= {*points.REQUEST, *points.DELAYED, *points.IDLE}
    assert rooms | others == set(FaultPoint)
