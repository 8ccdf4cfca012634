"""A worker that dies around the act of an idle step: what the step says is said once."""

import signal

import pytest

from shared.db.types import read_json
from shared.faults import FaultPoint
from tests.idle.test_processes import due, stands
from tests.system.conftest import Opener
from tests.waiting import poll

AROUND = (FaultPoint.ACTION_AFTER_EFFECT, FaultPoint.JOURNAL_BEFORE_COMMIT, FaultPoint.JOURNAL_AFTER_COMMIT)


@pytest.mark.parametrize("point", AROUND)
def test_a_step_is_said_once_whenever_its_worker_is_killed(opened: Opener, point: FaultPoint) -> None:
    site = opened()
    due(site)
    site.fleet.start("timers")
    site.fleet.start("watchdog")
    doomed = site.fleet.start("worker", fault=f"{point}:kill9")
    assert doomed.wait() == -signal.SIGKILL
    site.fleet.start("worker")
    poll(lambda: stands(site) == [("fired", True)], 60)
    marks = [
        read_json(row.parameters) for row in site.all("SELECT parameters FROM messages") if row.parameters
    ]
    assert [mark["idle_rule"]["step_index"] for mark in marks] == [0]
    (run,) = site.runs()
    assert run.status == "SUCCEEDED"
