"""The timers die around their commit, or several are at it: each slot still starts one run."""

import signal
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from shared.db.alerts import Alert, insert_alerts
from shared.faults import FaultPoint
from shared.model.automation import parse_definition
from shared.services.automations import apply_changes
from shared.services.definitions import Leftovers
from tests.system import points
from tests.system.conftest import Opener
from tests.system.deployment import CALLER, WORKSPACE, Deployment
from tests.waiting import poll


def due(site: Deployment) -> None:
    """Apply an automation on a schedule, one of whose slots has just come due."""
    definition = {
        "key": "yearly",
        "name": "Yearly",
        "trigger": {"type": "SCHEDULE", "config": {"cron": "0 0 1 1 *"}},
        "actions": [site.hook("/slot")],
    }
    apply_changes(site.backends, CALLER, [parse_definition(definition)], Leftovers.KEEP)
    slot = datetime.now(UTC) - timedelta(seconds=5)
    with site.backends.database.begin() as conn:
        conn.execute(text("UPDATE schedules SET next_fire_at = :slot"), {"slot": slot.isoformat()})


@pytest.mark.parametrize("point", points.TIMERS)
def test_a_slot_outlives_its_timers(opened: Opener, point: FaultPoint) -> None:
    site = opened()
    due(site)
    doomed = site.fleet.start("timers", fault=f"{point}:kill9")
    assert doomed.wait() == -signal.SIGKILL
    before_commit = point is FaultPoint.TIMERS_BEFORE_COMMIT
    assert site.statuses() == ([] if before_commit else ["PENDING"])
    for room in ("timers", "timers", "watchdog", "worker"):
        site.fleet.start(room)
    site.await_ended(1)
    assert site.statuses() == ["SUCCEEDED"]
    assert len(site.receiver.deliveries("/slot")) == 1
    (schedule,) = site.all("SELECT * FROM schedules")
    assert str(schedule.next_fire_at) > str(schedule.last_slot)


def test_timers_end_in_order_when_asked(opened: Opener) -> None:
    site = opened()
    timers = site.fleet.start("timers")
    due(site)
    site.await_status("PENDING", 1)
    timers.ask_to_end()
    assert timers.wait() == 0
    assert timers.has_logged("timers_stopped")


def test_alerts_are_folded_beside_the_loop(opened: Opener) -> None:
    site = opened()
    alert = Alert(WORKSPACE, "f" * 64, "a", "r", "Trouble", "It failed", "CODE", "")
    with site.backends.database.begin() as conn:
        insert_alerts(conn, [alert], now=datetime.now(UTC))
    site.fleet.start("timers")
    poll(lambda: site.all("SELECT id FROM alert_groups"), 20)
