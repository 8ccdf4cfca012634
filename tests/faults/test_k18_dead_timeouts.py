"""Actions that no exception reaches: the monitor ends their runs by its own clock, and others go on.

A thread cannot be killed, so it is abandoned and replaced. Where too many hang, the process ends itself.
"""

import threading
from collections.abc import Callable

import pytest

from executors.contract import ActionResult, RunContext
from pipeline.engine import Engine
from shared.model.actions import ActionConfig
from tests.faults import hostile
from tests.rooms import OpenRoom, start, tree
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.waiting import poll

RELEASE_S = 30
HANGING = "order.hanging"
Step = Callable[[threading.Event], None]


def swallow(release: threading.Event) -> None:
    """Catch whatever comes, and go on."""
    while not release.is_set():
        try:
            release.wait(0.05)
            raise TimeoutError
        except BaseException:  # noqa: BLE001 - the very fault
            continue


def return_late(release: threading.Event) -> None:
    release.wait(RELEASE_S)


def raise_late(release: threading.Event) -> None:
    release.wait(RELEASE_S)
    raise TimeoutError


def wait_in_a_thread(release: threading.Event) -> None:
    """Leave the waiting to a thread of its own, where no signal handler could run."""
    waiter = threading.Thread(target=release.wait, args=(RELEASE_S,), daemon=True)
    waiter.start()
    waiter.join()


STEPS: dict[str, Step] = {
    "swallows everything": swallow,
    "returns late": return_late,
    "raises late": raise_late,
    "waits in a thread": wait_in_a_thread,
}


@pytest.mark.parametrize(("name", "timeout_ms"), [*zip(STEPS, (1, 50, 200, 500), strict=True)])
def test_an_action_that_does_not_end_is_given_up_and_a_late_end_changes_nothing(
    open_here: OpenRoom, engines: list[Engine], name: str, timeout_ms: int
) -> None:
    release, came_back = threading.Event(), threading.Event()

    def bad(config: ActionConfig, run: RunContext) -> ActionResult:
        try:
            STEPS[name](release)
        finally:
            came_back.set()
        return ActionResult({})

    room = open_here({"SEND_WEBHOOK": bad}, automations_worker_concurrency=1)
    hook = {"type": "SEND_WEBHOOK", "config": {"url": "http://127.0.0.1:9/"}, "timeout_ms": timeout_ms}
    first, second = room.runs(room.automation(hook), [{}, {}])
    third = room.run(room.automation({"type": "EMIT_EVENT", "config": {"event_type": "a.b"}}))
    engine = start(room, engines)
    engine.take([first, second, third])
    poll(lambda: [room.status(each) for each in (first, second, third)] == ["FAILED", "FAILED", "SUCCEEDED"])
    ended = room.row(first)
    assert (tree(ended.error)["code"], ended.retry_count) == ("ACTION_TIMEOUT", 0)
    release.set()
    assert came_back.wait(10)
    assert engine.wait_idle(5)
    assert room.row(first) == ended
    assert room.all("SELECT * FROM run_actions WHERE run_id = :id", id=first) == []
    assert engine.failure() is None


@pytest.mark.parametrize("path", ["/hang", "/compute"])
def test_a_process_with_too_many_hanging_threads_ends_and_the_next_one_goes_on(
    opened: Opener, path: str
) -> None:
    site = opened(AUTOMATIONS_WORKER_CONCURRENCY=1)
    site.automation(site.hook("/one"))
    site.automation(site.hook(path, timeout_ms=100), on=HANGING)
    site.fleet.start("matcher")
    site.publish(3, HANGING)
    site.publish()
    site.await_status("PENDING", 4)
    worker = site.fleet.start_as(hostile.work, "worker")
    assert worker.wait() == 1
    assert worker.has_logged("worker_failed")
    site.fleet.start("worker")
    site.await_ended(4)
    check_account(site)
    assert sorted(site.statuses()) == ["FAILED", "FAILED", "FAILED", "SUCCEEDED"]
    failed = [tree(run.error)["code"] for run in site.runs() if run.status == "FAILED"]
    assert failed == ["ACTION_TIMEOUT"] * 3
