"""Activation that arms what is in the state already: newest first, bounded, once, told and audited."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from shared.db.audit_reads import AuditQuery, list_audit
from shared.db.pending_lists import PendingQuery, list_pending
from shared.db.pending_reads import PendingSummary, find_pending
from shared.db.subjects import project_changes
from shared.db.subjects_newest import newest_subjects
from shared.errors import Conflict
from shared.keys import delayed_key
from shared.model.events import event_from_json
from shared.model.pending import PendingSkip, PendingStatus
from shared.model.subjects import DATABASE_FIELD, SubjectDelete, SubjectWrite
from shared.services import arming_existing
from shared.services.arming_existing import activate_and_arm
from shared.services.automations import activate, create, pause
from shared.services.backends import Backends
from shared.time.clock import ManualClock, epoch_ms
from tests.listening import capture_logs
from tests.people import CALLER, NOW, definition, opened_backends
from tests.statements import explain, statements

STUCK = {"all": [{"field": "conversation.status", "op": "eq", "value": "pending"}]}
HOUR = timedelta(hours=1)


@pytest.fixture
def opened(database_url: str, redis_url: str) -> Iterator[Backends]:
    with opened_backends(database_url, redis_url) as backends:
        set_redis_clock(backends)
        yield backends


def set_redis_clock(backends: Backends) -> None:
    """Bring our clock to that of Redis, which stamps the activation."""
    clock = backends.clock
    assert isinstance(clock, ManualClock)
    seconds, micros = backends.redis.time()
    clock.advance(datetime.fromtimestamp(seconds, NOW.tzinfo) + timedelta(microseconds=micros) - NOW)


def write(
    backends: Backends, id_: str, before: timedelta, /, type_: str = "conversation", **fields: Any
) -> None:
    at = backends.clock.now() - before
    change = SubjectWrite("w1", type_, id_, (epoch_ms(at), 0), f"{id_}-{before}", fields)
    with backends.database.begin() as conn:
        project_changes(conn, [change], now=at)


def waiting(backends: Backends) -> dict[str, PendingSummary]:
    with backends.database.read() as conn:
        rows = list_pending(conn, PendingQuery("w1", 1_000))
    return {row.subject.id: row for row in rows}


def stuck(backends: Backends, **given: Any) -> None:
    wanted = {"trigger": {"type": "CONVERSATION_UPDATED"}, "conditions": STUCK, "execution_delay": 240}
    create(backends, CALLER, definition("stuck", **{"status": "PAUSED", **wanted, **given}))


def test_what_is_in_the_state_already_waits_from_when_it_came_into_it(opened: Backends) -> None:
    write(opened, "new", HOUR, status="pending")
    write(opened, "old", 100 * HOUR, status="pending")
    write(opened, "open", HOUR, status="open")
    write(opened, "gone", HOUR, status="pending")
    now = opened.clock.now()
    with opened.database.begin() as conn:
        project_changes(conn, [SubjectDelete("w1", "conversation", "gone", (epoch_ms(now), 0), "d")], now=now)
    write(opened, "contact", HOUR, "contact", status="pending")
    stuck(opened)
    with capture_logs() as lines:
        turned, found = activate_and_arm(opened, CALLER, "stuck")
    assert (turned.changed, found.looked_at, found.armed, found.is_whole) == (True, 4, 2, True)
    rows = waiting(opened)
    assert rows.keys() == {"new", "old"}
    began = opened.clock.now() - HOUR
    assert rows["new"].started_at == began.replace(microsecond=began.microsecond // 1_000 * 1_000)
    assert rows["new"].due_at == rows["new"].started_at + 4 * HOUR
    assert now <= rows["old"].due_at <= now + HOUR
    assert [line["armed"] for line in lines if line["event"] == "existing_armed"] == [2]
    assert int(opened.redis.get(delayed_key(opened.keys, "armed")) or 0) == 2
    with opened.database.read() as conn:
        (entry,) = [
            each for each in list_audit(conn, AuditQuery("w1", 50)) if each.action == "automation.armed"
        ]
        (line,) = conn.execute(
            text("SELECT message FROM automation_logs WHERE automation_id = :id"), {"id": turned.row.id}
        )
        detail = find_pending(conn, "w1", rows["new"].id)
    assert entry.detail is not None
    assert entry.detail["after"] == {"looked_at": 4, "armed": 2}
    assert line.message == "existing subjects armed"
    assert detail is not None
    event = event_from_json(detail.trigger_event)
    assert (event.type, event.payload) == (
        "conversation.updated",
        {"conversation": {"status": "pending", "id": "new"}},
    )


def test_a_second_call_arms_nothing_twice_and_revives_what_the_pause_ended(opened: Backends) -> None:
    for name in ("waits", "paused", "ran", "cancelled"):
        write(opened, name, HOUR, status="pending")
    stuck(opened)
    assert activate_and_arm(opened, CALLER, "stuck")[1].armed == 4
    before = waiting(opened)
    ends = {
        "paused": "status = 'skipped', skip_reason = 'rule_inactive', ended_at = updated_at",
        "ran": "status = 'executed', ended_at = updated_at",
        "cancelled": "status = 'skipped', skip_reason = 'cancelled'",
    }
    with opened.database.begin() as conn:
        for name, change in ends.items():
            conn.execute(text(f"UPDATE pending_executions SET {change} WHERE subject_id = '{name}'"))
    pause(opened, CALLER, "stuck")
    turned, found = activate_and_arm(opened, CALLER, "stuck")
    assert (turned.changed, found.armed) == (True, 1)
    after = waiting(opened)
    assert {name: row.id for name, row in after.items()} == {name: row.id for name, row in before.items()}
    assert {name: (row.status, row.skip_reason, row.ended_at) for name, row in after.items()} == {
        "waits": (PendingStatus.PENDING, None, None),
        "paused": (PendingStatus.PENDING, None, None),
        "ran": (PendingStatus.EXECUTED, None, None),
        "cancelled": (PendingStatus.SKIPPED, PendingSkip.CANCELLED, None),
    }
    turned, found = activate_and_arm(opened, CALLER, "stuck")
    assert (turned.changed, found.looked_at, found.armed) == (False, 4, 0)


def test_only_the_newest_are_looked_at_in_batches(opened: Backends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arming_existing, "BATCH", 3)
    monkeypatch.setattr(arming_existing, "LOOKED_AT", 6)
    for number in range(1, 10):
        write(opened, f"c{number}", number * HOUR, status="pending")
    stuck(opened)
    found = activate_and_arm(opened, CALLER, "stuck")[1]
    assert (found.looked_at, found.armed, found.is_whole) == (6, 6, False)
    assert waiting(opened).keys() == {f"c{number}" for number in range(1, 7)}


def test_records_of_another_database_are_left_alone_and_changes_count_as_made(opened: Backends) -> None:
    for name, database in (("ours", "d1"), ("theirs", "d2")):
        write(opened, name, HOUR, "record", status="late", **{DATABASE_FIELD: database})
    late = {"all": [{"field": "properties.status", "op": "changed_to", "value": "late"}]}
    trigger = {"type": "PROPERTY_CHANGED", "config": {"properties": ["status"], "databaseId": "d1"}}
    stuck(opened, trigger=trigger, conditions=late)
    assert activate_and_arm(opened, CALLER, "stuck")[1].armed == 1
    assert waiting(opened).keys() == {"ours"}


def test_an_own_type_is_the_noun_of_the_event_type(opened: Backends) -> None:
    write(opened, "o1", HOUR, "order", paid=False)
    unpaid = {"all": [{"field": "order.paid", "op": "eq", "value": False}]}
    stuck(opened, trigger={"type": "EVENT", "config": {"eventType": "order.placed"}}, conditions=unpaid)
    assert activate_and_arm(opened, CALLER, "stuck")[1].armed == 1


@pytest.mark.parametrize(
    "given",
    [
        {"execution_delay": None},
        {"trigger": {"type": "MESSAGE_CREATED"}, "conditions": None},
        {"trigger": {"type": "EVENT", "config": {"eventType": "*"}}},
        {"trigger": {"type": "EVENT", "config": {"eventType": "message.created"}}},
    ],
)
def test_what_waits_for_no_state_is_refused_and_stays_off(opened: Backends, given: dict[str, Any]) -> None:
    stuck(opened, **given)
    with pytest.raises(Conflict):
        activate_and_arm(opened, CALLER, "stuck")
    assert activate(opened, CALLER, "stuck").changed


def test_the_newest_subjects_are_found_by_a_walk_down_their_index(opened: Backends) -> None:
    for number in range(3):
        write(opened, f"c{number}", number * HOUR, status="pending")
    with opened.database.read() as conn:
        if conn.dialect.name == "postgresql":
            conn.exec_driver_sql("SET LOCAL enable_seqscan = off")
        with statements(conn) as seen:
            newest_subjects(conn, "w1", "conversation", None, most=2)
        told = explain(conn, *seen[0])
    assert "ix_subjects_updated" in told
    assert "Sort" not in told
    assert "TEMP B-TREE" not in told
