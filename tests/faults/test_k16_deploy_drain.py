"""A deployment ends processes under load: they stop reading, hand back what they hold, and lose nothing.

However often they are asked, and even if one is killed before it is done: no run is dead because of it.
"""

from tests.receiver import Script, Step
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.waiting import poll

EVENTS = 20
LATE = 5
RESCUE_S = 60


def test_a_worker_that_is_asked_to_end_hands_its_runs_back(opened: Opener) -> None:
    slow: Script = {"/two": [*[Step(after_s=30)] * 2, Step(after_s=0.05)]}
    site = opened(script=slow, SHUTDOWN_GRACE_S=1)
    site.automation(site.hook("/one"), site.hook("/two"), site.hook("/three"))
    site.fleet.start("matcher")
    site.fleet.start("scheduler")
    ending = site.fleet.spawn("worker")
    site.publish(EVENTS)
    site.await_delivery("/two", 2)
    ending.ask_to_end()
    poll(lambda: ending.has_logged("worker_stopping"))
    late = {draft.id for draft in site.publish(LATE)}
    ending.ask_to_end()
    assert ending.wait(15) == 0
    poll(lambda: len(site.runs()) == EVENTS + LATE)
    assert {run.lease for run in site.runs() if run.event_key.removeprefix("id:") in late} == {0}
    statuses = site.statuses()
    assert "RUNNING" not in statuses
    assert "PENDING" in statuses
    site.fleet.start("worker")
    site.await_ended(EVENTS + LATE)
    check_account(site, repeats=1)
    assert site.statuses() == ["SUCCEEDED"] * (EVENTS + LATE)
    assert {(run.retry_count, run.crash_count) for run in site.runs()} == {(0, 0)}
    assert set(site.outcomes()) == {"handed_back", "succeeded"}
    assert len(site.receiver.deliveries("/two")) == EVENTS + LATE + 2
    assert len(site.receiver.deliveries("/one")) == EVENTS + LATE


def test_a_worker_that_is_killed_while_it_ends_leaves_the_rest_to_its_leases(opened: Opener) -> None:
    slow: Script = {"/one": [*[Step(after_s=30)] * 2, Step()]}
    site = opened(script=slow, SHUTDOWN_GRACE_S=10)
    site.automation(site.hook("/one"))
    site.fleet.start("matcher")
    site.fleet.start("scheduler")
    ending = site.fleet.start("worker", AUTOMATIONS_WORKER_CONCURRENCY=2)
    site.publish(EVENTS)
    site.await_delivery("/one", 2)
    ending.ask_to_end()
    poll(lambda: ending.has_logged("worker_stopping"))
    ending.ask_to_end()
    poll(lambda: site.statuses().count("RUNNING") == 2)
    ending.kill9()
    site.fleet.start("worker")
    site.await_ended(EVENTS, RESCUE_S)
    check_account(site, repeats=1)
    assert site.statuses() == ["SUCCEEDED"] * EVENTS
    # Only the two runs that were in the middle of an action pay for the kill, and none for the drain.
    assert site.outcomes().count("crashed") == 2
    assert sorted(run.crash_count for run in site.runs()) == [*[0] * (EVENTS - 2), 1, 1]


def test_every_process_ends_well_when_asked(opened: Opener) -> None:
    site = opened()
    processes = [site.fleet.start(room) for room in ("matcher", "worker", "scheduler", "watchdog")]
    site.automation(site.hook("/one"))
    site.publish()
    site.await_ended(1)
    for process in processes:
        process.ask_to_end()
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    check_account(site)
