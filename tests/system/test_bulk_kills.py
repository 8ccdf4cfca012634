"""The timers die in the middle of a bulk operation: others go on, and each run has one turn."""

import signal

import pytest

from shared.faults import FaultPoint
from shared.services.bulk import confirm, preview
from tests.bulk import add_ended, make_automation, wish
from tests.system import points
from tests.system.conftest import Opener
from tests.system.deployment import CALLER, Deployment
from tests.waiting import poll
from timers.bulk import BATCH

NUMBER = 3 * BATCH + 100


def operation(site: Deployment) -> tuple[str, int]:
    row = site.one("SELECT status, done FROM bulk_operations")
    return row.status, row.done


@pytest.mark.parametrize("point", points.BULK)
def test_an_operation_outlives_its_timers(opened: Opener, point: FaultPoint) -> None:
    site = opened()
    add_ended(site.backends, make_automation(site.backends), NUMBER)
    confirm(site.backends, CALLER, preview(site.backends, CALLER, wish()).id)
    doomed = site.fleet.start("timers", fault=f"{point}@2:kill9")
    assert doomed.wait() == -signal.SIGKILL
    committed = 1 if point is FaultPoint.BULK_BEFORE_COMMIT else 2
    assert operation(site) == ("RUNNING", committed * BATCH)
    assert site.statuses().count("PENDING") == committed * BATCH
    for _ in range(2):
        site.fleet.start("timers")
    poll(lambda: operation(site)[0] == "DONE", 30)
    assert operation(site) == ("DONE", NUMBER)
    assert site.statuses() == ["PENDING"] * NUMBER
    lines = site.all("SELECT run_id FROM automation_logs WHERE message = 'run replayed'")
    assert len(lines) == len({line.run_id for line in lines}) == NUMBER
