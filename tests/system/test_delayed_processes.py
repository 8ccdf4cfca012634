"""Delayed automations as processes: whoever dies, what was due runs once, and what is over does not run."""

import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from shared.db.pending import insert_pending
from shared.faults import FaultPoint
from shared.ids import new_id
from shared.model.events import Event, event_to_json
from shared.model.pending import PendingRow, PendingStatus
from shared.model.stamps import format_stamp
from shared.model.subject_events import payload_of
from shared.rules.episodes import state_episode
from shared.services.subjects import SubjectFields, put_subject
from tests.receiver import Script, Step
from tests.system import points
from tests.system.conftest import Opener
from tests.system.deployment import CALLER, WORKSPACE, Deployment
from tests.waiting import poll

AGO = timedelta(minutes=7)
PAID = {"field": "order.state", "op": "eq", "value": "unpaid"}


def put(site: Deployment, **fields: Any) -> None:
    """Write fields of the order o1 as a person does."""
    put_subject(site.backends, CALLER, SubjectFields("order", "o1", fields))


def due(site: Deployment, *paths: str) -> str:
    """Apply a delayed automation, and let an order wait for it that is due now; give the row's id."""
    automation_id = site.automation(
        *(site.hook(path) for path in paths), on="order.updated", conditions=PAID, execution_delay=1
    )
    row = put_subject(site.backends, CALLER, SubjectFields("order", "o1", {"state": "unpaid"})).row
    now = datetime.now(UTC)
    event = Event(
        entry_id=format_stamp(row.newest),
        type="order.updated",
        workspace_id=WORKSPACE,
        payload=payload_of(row),
        id=new_id(),
        occurred_at=now,
        context=None,
        source=None,
        sanitized=False,
    )
    waits = PendingRow(
        id=new_id(),
        workspace_id=WORKSPACE,
        automation_id=automation_id,
        subject_type="order",
        subject_id="o1",
        episode=state_episode(row.newest),
        trigger_event=event_to_json(event),
        due_at=now - timedelta(seconds=1),
        status=PendingStatus.PENDING,
        skip_reason=None,
        run_id=None,
        version=1,
        armed_at=now,
        claimed_at=None,
        ended_at=None,
        created_at=now,
        updated_at=now,
    )
    with site.backends.database.begin() as conn:
        insert_pending(conn, [waits])
    return waits.id


def statuses(site: Deployment) -> list[str]:
    return [row.status for row in site.all("SELECT status FROM pending_executions")]


def long_ago(site: Deployment) -> None:
    """Let the claims of dead sweeps be old enough to come back."""
    with site.backends.database.begin() as conn:
        conn.execute(
            text("UPDATE pending_executions SET claimed_at = :at WHERE status = 'processing'"),
            {"at": (datetime.now(UTC) - AGO).isoformat()},
        )


@pytest.mark.parametrize("point", points.DELAYED)
def test_what_is_due_outlives_its_timers(opened: Opener, point: FaultPoint) -> None:
    site = opened()
    found = due(site, "/due")
    doomed = site.fleet.start("timers", fault=f"{point}:kill9")
    assert doomed.wait() == -signal.SIGKILL
    has_fired = point is FaultPoint.DELAYED_AFTER_COMMIT
    assert statuses(site) == (["executed"] if has_fired else ["processing"])
    assert site.statuses() == (["PENDING"] if has_fired else [])
    long_ago(site)
    for room in ("timers", "timers", "watchdog", "worker"):
        site.fleet.start(room)
    site.await_ended(1)
    (run,) = site.runs()
    assert (run.source, run.source_id, run.status) == ("delayed", found, "SUCCEEDED")
    assert len(site.receiver.deliveries("/due")) == 1
    assert statuses(site) == ["executed"]


def test_a_delayed_run_outlives_its_worker_and_is_not_asked_again_once_it_has_acted(opened: Opener) -> None:
    slow: Script = {"/two": [Step(after_s=60), Step()]}
    site = opened(script=slow)
    due(site, "/one", "/two")
    site.fleet.start("timers")
    worker = site.fleet.start("worker")
    site.await_delivery("/two")
    worker.kill9()
    put(site, state="paid")
    site.fleet.start("worker")
    site.await_ended(1)
    assert site.statuses() == ["SUCCEEDED"]
    assert Counter(each.path for each in site.receiver.deliveries()) == {"/one": 1, "/two": 2}
    assert statuses(site) == ["executed"]


def test_a_delayed_run_whose_worker_died_before_it_acted_is_asked_again(opened: Opener) -> None:
    site = opened()
    due(site, "/due")
    site.fleet.start("timers")
    doomed = site.fleet.start("worker", fault=f"{FaultPoint.ACTION_BEFORE_EFFECT}:kill9")
    assert doomed.wait() == -signal.SIGKILL
    put(site, state="paid")
    site.fleet.start("worker")
    site.await_ended(1)
    (run,) = site.runs()
    assert (run.status, run.skip_reason) == ("SUCCEEDED", "conditions_changed")
    assert site.receiver.deliveries("/due") == []
    (row,) = site.all("SELECT status, skip_reason FROM pending_executions")
    assert (row.status, row.skip_reason) == ("skipped", "conditions_changed")


def test_timers_that_end_in_order_leave_no_claim(opened: Opener) -> None:
    site = opened()
    due(site, "/due")
    timers = site.fleet.start("timers")
    poll(lambda: statuses(site) == ["executed"], 20)
    timers.ask_to_end()
    assert timers.wait() == 0
