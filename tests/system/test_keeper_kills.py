"""The scheduler or the watchdog dies half-way: nothing happened, and another one does it."""

import signal

from tests.receiver import Script, Step
from tests.system import points
from tests.system.account import check_account
from tests.system.conftest import Opener


def test_a_retry_outlives_its_scheduler(opened: Opener) -> None:
    refused_once: Script = {"/one": [503, 200]}
    site = opened(script=refused_once, HANDLE_LOST_S=60)  # so that nobody but a scheduler wakes the run
    site.automation(site.hook("/one"))
    site.fleet.start("matcher")
    site.fleet.start("worker")
    doomed = site.fleet.start("scheduler", fault=f"{points.SCHEDULER}:kill9")
    site.publish()
    assert doomed.wait() == -signal.SIGKILL
    assert site.statuses() == ["PENDING"]
    site.fleet.start("scheduler")
    site.await_ended(1)
    check_account(site)
    assert site.outcomes() == ["failed", "succeeded"]


def test_a_rescue_outlives_its_watchdog(opened: Opener) -> None:
    slow: Script = {"/one": [Step(after_s=60), Step()]}
    site = opened(script=slow)
    site.automation(site.hook("/one"))
    site.fleet.start("matcher")
    worker = site.fleet.start("worker")
    site.publish()
    site.await_delivery("/one")
    worker.kill9()
    doomed = site.fleet.start("watchdog", fault=f"{points.WATCHDOG}:kill9")
    assert doomed.wait() == -signal.SIGKILL
    assert site.statuses() == ["RUNNING"]
    assert site.outcomes() == []
    site.fleet.start("watchdog")
    site.await_status("PENDING", 1)
    site.fleet.start("worker")
    site.await_ended(1)
    check_account(site, repeats=1)
    assert site.outcomes() == ["crashed", "succeeded"]


def test_a_run_that_always_fails_is_a_dead_letter_with_one_notice(opened: Opener) -> None:
    site = opened(script={"/one": [503]})
    site.automation(site.hook("/one", retries=1))
    for room in ("matcher", "scheduler", "worker", "worker", "watchdog"):
        site.fleet.start(room)
    site.publish(3)
    site.await_ended(3)
    check_account(site)
    assert site.statuses() == ["DEAD_LETTER"] * 3
    assert site.outcomes() == ["failed"] * 6
