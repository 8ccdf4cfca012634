"""A worker sleeps through its lease and wakes up when another has done its work: it writes nothing more."""

import threading
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import text

from shared.faults import FaultPoint
from tests.receiver import Script, Step
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.system.deployment import Deployment, open_deployment
from tests.system.fleet import Process
from tests.waiting import poll

FREE_S = 1.0


def freeze(site: Deployment, process: Process) -> None:
    """Stop a process at a moment when it keeps nobody else from writing."""

    def lock_all() -> None:
        with site.backends.database.begin() as conn:
            if site.backends.database.dialect == "postgresql":
                conn.execute(text("LOCK TABLE automation_runs, locks"))

    def frozen() -> bool:
        process.freeze()
        writer = threading.Thread(target=lock_all, daemon=True)
        writer.start()
        writer.join(FREE_S)
        if writer.is_alive():
            process.thaw()
            writer.join()
            return False
        return True

    poll(frozen)


def test_a_worker_that_slept_through_its_lease_changes_nothing(opened: Opener) -> None:
    slow: Script = {"/two": [Step(after_s=3), Step()]}
    site = opened(script=slow)
    site.automation(site.hook("/one"), site.hook("/two"), site.hook("/three"))
    site.fleet.start("matcher")
    sleeper = site.fleet.start("worker")
    site.publish()
    site.await_delivery("/two")
    freeze(site, sleeper)
    site.fleet.start("worker")
    site.await_ended(1)
    history = (site.runs(), site.attempts(), site.all("SELECT * FROM run_actions ORDER BY position"))
    deliveries = len(site.receiver.deliveries())
    sleeper.thaw()
    poll(lambda: sleeper.has_logged("claim_lost"), 20)
    assert sleeper.is_alive()
    assert history == (site.runs(), site.attempts(), site.all("SELECT * FROM run_actions ORDER BY position"))
    check_account(site, repeats=1)
    (run,) = site.runs()
    assert (run.status, run.retry_count) == ("SUCCEEDED", 1)
    assert site.outcomes() == ["crashed", "succeeded"]
    assert len(site.receiver.deliveries()) == deliveries
    calls = Counter(each.path for each in site.receiver.deliveries())
    assert calls == {"/one": 1, "/two": 2, "/three": 1}


@pytest.mark.parametrize("nth", [1, 2])
def test_a_worker_that_froze_inside_a_transaction_lets_go_of_its_rows(
    redis_url: str, postgres_url: str, tmp_path: Path, nth: int
) -> None:
    with open_deployment(redis_url, postgres_url, tmp_path) as site:
        site.automation(site.hook("/one"), site.hook("/two"))
        site.fleet.start("matcher")
        frozen = site.fleet.start("worker", fault=f"{FaultPoint.JOURNAL_BEFORE_COMMIT}@{nth}:stop")
        site.publish()
        poll(frozen.is_frozen)
        site.fleet.start("worker")
        site.await_ended(1)
        frozen.thaw()
        poll(lambda: frozen.has_logged("claim_lost"), 20)
        check_account(site, repeats=1)
        assert site.outcomes() == ["crashed", "succeeded"]
        assert not frozen.has_logged("run_moved")
