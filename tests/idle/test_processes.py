"""Idle steps as processes: whichever sweep dies, what was due has one run, later."""

import signal
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from shared.db.idle_steps import insert_idle
from shared.db.messages import insert_messages
from shared.faults import FaultPoint
from shared.ids import new_id
from shared.model.idle_steps import IdleRuleKind
from shared.model.messages import Direction, Message, SenderType
from shared.rules.idle_arming import first_step
from shared.rules.idle_rules import channel_plan
from shared.services.subjects import SubjectFields, put_subject
from shared.time.clock import epoch_ms
from tests.idle_stage import GLOBAL, add_channel
from tests.system import points
from tests.system.conftest import Opener
from tests.system.deployment import CALLER, WORKSPACE, Deployment
from tests.waiting import poll

AGO = timedelta(minutes=7)


def due(site: Deployment) -> str:
    """Let a conversation wait for the rule of its channel, which is due now; give the step's id."""
    put_subject(site.backends, CALLER, SubjectFields("conversation", "c1", {"status": "open"}))
    now = datetime.now(UTC)
    said = Message(
        workspace_id=WORKSPACE,
        id=new_id(),
        conversation_id="c1",
        direction=Direction.OUTGOING,
        sender_type=SenderType.AGENT,
        sender_id=None,
        agent_id=None,
        content="Hello.",
        private=False,
        auto_submitted=False,
        stamp=(epoch_ms(now), 0),
        run_id=None,
        created_at=now - timedelta(hours=1),
    )
    plan = channel_plan({"idle_rule": GLOBAL})
    assert plan is not None
    row = first_step((WORKSPACE, IdleRuleKind.CHANNEL, "shop"), plan, said, now)
    with site.backends.database.begin() as conn:
        add_channel(conn, workspace_id=WORKSPACE)
        insert_messages(conn, [said])
        insert_idle(conn, [row])
    return row.id


def stands(site: Deployment) -> list[tuple[str, bool]]:
    rows = site.all("SELECT status, run_id FROM idle_steps")
    return [(row.status, row.run_id is not None) for row in rows]


@pytest.mark.parametrize("point", points.IDLE)
def test_a_step_that_is_due_outlives_its_timers(opened: Opener, point: FaultPoint) -> None:
    site = opened()
    found = due(site)
    doomed = site.fleet.start("timers", fault=f"{point}:kill9")
    assert doomed.wait() == -signal.SIGKILL
    has_fired = point is FaultPoint.IDLE_AFTER_COMMIT
    assert stands(site) == [("processing", has_fired)]
    with site.backends.database.begin() as conn:
        long_ago = {"at": (datetime.now(UTC) - AGO).isoformat()}
        conn.execute(text("UPDATE idle_steps SET claimed_at = :at"), long_ago)
    for _ in range(2):
        site.fleet.start("timers")
    poll(lambda: stands(site) == [("processing", True)], 20)
    (run,) = site.all("SELECT source, source_id, status FROM automation_runs")
    assert (run.source, run.source_id, run.status) == ("idle_step", found, "PENDING")
