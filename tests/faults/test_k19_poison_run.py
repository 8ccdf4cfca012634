"""A run that kills its process dies alone, at the third crash, and its signal is named."""

import signal

import pytest

from shared.faults import FaultPoint
from tests.faults import hostile
from tests.rooms import tree
from tests.system.account import check_account
from tests.system.conftest import Opener

NEIGHBOURS = 5
CRASHES_S = 60
POISONED = "order.poisoned"


@pytest.mark.parametrize(("path", "signum"), [("/abort", signal.SIGABRT), ("/segfault", signal.SIGSEGV)])
def test_a_run_that_kills_its_process_is_a_dead_letter_told_of_once(
    opened: Opener, path: str, signum: signal.Signals
) -> None:
    site = opened()
    site.automation(site.hook("/one"))
    poisoned = site.automation(site.hook(path), on=POISONED)
    site.fleet.start("matcher")
    site.publish(event_type=POISONED)
    site.publish()
    site.await_status("PENDING", 2)
    first = site.fleet.start_as(hostile.work, "worker")
    assert first.wait() == -signum
    second = site.fleet.start_as(hostile.work, "worker")
    site.publish(NEIGHBOURS - 1)
    site.await_ended(1 + NEIGHBOURS, CRASHES_S)
    assert second.is_alive()
    check_account(site, repeats=1)
    runs = {run.automation_id: run for run in site.runs()}
    dead = runs.pop(poisoned)
    assert (dead.status, dead.crash_count, tree(dead.error)["code"]) == ("DEAD_LETTER", 3, "WORKER_CRASHED")
    assert signum.name in tree(dead.error)["message"]
    assert sorted(site.statuses()) == ["DEAD_LETTER", *["SUCCEEDED"] * NEIGHBOURS]
    assert [outcome for run_id, _, outcome in site.attempts() if run_id == dead.id] == ["crashed"] * 3


def test_a_run_that_is_killed_from_outside_each_time_is_one_too(opened: Opener) -> None:
    site = opened()
    site.automation(site.hook("/one"))
    site.fleet.start("matcher")
    first = site.fleet.start("worker", fault=f"{FaultPoint.ACTION_AFTER_EFFECT}:kill9")
    site.publish()
    assert first.wait() == -signal.SIGKILL
    second = site.fleet.start("worker", fault=f"{FaultPoint.ACTION_AFTER_EFFECT}:kill9")
    site.await_ended(1, CRASHES_S)
    assert second.is_alive()
    check_account(site)
    (run,) = site.runs()
    assert run.status == "DEAD_LETTER"
    assert "SIGKILL" in tree(run.error)["message"]
    assert site.outcomes() == ["crashed"] * 3


def test_a_run_that_asks_for_too_much_memory_fails_and_its_process_lives(opened: Opener) -> None:
    site = opened()
    site.automation(site.hook("/one"))
    greedy = site.automation(site.hook("/memory"), on=POISONED)
    site.fleet.start("matcher")
    worker = site.fleet.start_as(hostile.work, "worker")
    site.publish(event_type=POISONED)
    site.publish(NEIGHBOURS)
    site.await_ended(1 + NEIGHBOURS)
    site.publish(NEIGHBOURS)
    site.await_ended(1 + 2 * NEIGHBOURS)
    check_account(site)
    (failed,) = [run for run in site.runs() if run.automation_id == greedy]
    assert (failed.status, failed.crash_count, tree(failed.error)["code"]) == ("FAILED", 0, "UNEXPECTED")
    assert "MemoryError" in tree(failed.error)["message"]
    assert site.statuses().count("SUCCEEDED") == 2 * NEIGHBOURS
    assert worker.is_alive()
