"""What is forgotten by its age: each kind in its own time, oldest first, and no younger row with it."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from redis import Redis
from rq.job import Job

from shared.db.ageing import Ageing
from shared.db.retention import Expiry, oldest_expired
from shared.db.tables import AUDIT, LOGS, NOTIFICATIONS
from shared.db.tables_api import IDEMPOTENCY_KEYS
from shared.db.tables_bulk import BULK_OPERATIONS
from shared.db.tables_idle import IDLE_STEPS
from shared.db.tables_pending import PENDING_EXECUTIONS
from shared.db.tables_people import ALERT_GROUPS, ALERT_SENDS, ALERTS
from shared.db.tables_talk import MESSAGES
from shared.model.runs import QueueKind
from tests.any_rows import add_row
from tests.history import DAY, Runs, add_runs, id_at
from tests.listening import capture_logs
from tests.watchdog_stage import WORKSPACE, Stage, close_stage, open_stage
from watchdog.retention import Pruner, Retention, batches

KEPT = Retention(30 * DAY).by_age
MINUTE = timedelta(minutes=1)


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    opened = open_stage(database_url, redis_url)
    yield opened
    close_stage(opened)


# Each kind's table, and the column that tells how old a row is.
KINDS = {
    Ageing.LOGS_ALONE: (LOGS, "at"),
    Ageing.AUDIT: (AUDIT, "at"),
    Ageing.NOTIFICATIONS: (NOTIFICATIONS, "created_at"),
    Ageing.MESSAGES: (MESSAGES, "created_at"),
    Ageing.ALERTS: (ALERTS, "created_at"),
    Ageing.ALERT_SENDS: (ALERT_SENDS, "ended_at"),
    Ageing.ALERT_GROUPS: (ALERT_GROUPS, "last_at"),
    Ageing.BULK_OPERATIONS: (BULK_OPERATIONS, "moved_at"),
    Ageing.IDEMPOTENCY_KEYS: (IDEMPOTENCY_KEYS, "created_at"),
    Ageing.PENDING_EXECUTIONS: (PENDING_EXECUTIONS, "ended_at"),
    Ageing.IDLE_STEPS: (IDLE_STEPS, "ended_at"),
}

# Columns of which no two rows may say the same.
UNIQUE = {
    Ageing.ALERT_GROUPS: ("fingerprint",),
    Ageing.PENDING_EXECUTIONS: ("episode_key",),
    Ageing.IDLE_STEPS: ("anchor_message_id",),
}


def add(stage: Stage, what: Ageing, at: datetime | None, made: datetime) -> str:
    """Write one row of this age, with anything in its other columns, and give its id."""
    table, aged_by = KINDS[what]
    row_id = id_at(made)
    own = {} if table is LOGS else {"key" if table is IDEMPOTENCY_KEYS else "id": row_id}
    belongs = {} if table is IDEMPOTENCY_KEYS else {"workspace_id": WORKSPACE}
    given = {**belongs, aged_by: at}
    marked = dict.fromkeys(UNIQUE.get(what, ()), row_id)
    with stage.database.begin() as conn:
        add_row(conn, table, **own, **given, **marked)
    return row_id


def prune(stage: Stage, batch: int = 5_000) -> dict[str, int]:
    with capture_logs() as logs:
        Pruner(stage.parts, batch).take_turn()
    told = [line for line in logs if line["event"] == "history_pruned"]
    return {key: value for line in told for key, value in line.items() if isinstance(value, int)}


def test_each_kind_has_its_time() -> None:
    assert KEPT.keys() == set(Ageing)
    assert KINDS.keys() == set(Ageing) - {Ageing.VERSIONS}


@pytest.mark.parametrize("what", KINDS)
def test_what_is_too_old_is_forgotten_and_nothing_younger(stage: Stage, what: Ageing) -> None:
    now, kept = stage.clock.now(), KEPT[what]
    for number in range(7):
        at = now - kept - MINUTE * (number + 1)
        add(stage, what, at, at)
    young = now - kept + MINUTE
    row_id = add(stage, what, young, young)
    assert prune(stage, batch=3) == {what.value: 7}
    (left,) = stage.rows(f"SELECT * FROM {KINDS[what][0].name}")
    assert row_id in map(str, left) or what is Ageing.LOGS_ALONE
    assert prune(stage) == {}


@pytest.mark.parametrize("status", ["PENDING", "DEAD_LETTER", "SUCCEEDED"])
def test_an_idle_step_is_kept_as_long_as_its_run_may_go_on_with_it(stage: Stage, status: str) -> None:
    (run_id,) = stage.pending(1)
    ended = None if status == "PENDING" else (stage.clock.now() - 40 * DAY).isoformat()
    stage.write("UPDATE automation_runs SET status = :status, ended_at = :ended", status=status, ended=ended)
    old = stage.clock.now() - 31 * DAY
    add(stage, Ageing.IDLE_STEPS, old, old)
    stage.write("UPDATE idle_steps SET run_id = :id", id=run_id)
    prune(stage)
    assert len(stage.rows("SELECT id FROM idle_steps")) == (status != "SUCCEEDED")


def test_what_an_alert_still_has_to_send_is_kept(stage: Stage) -> None:
    add(stage, Ageing.ALERT_SENDS, None, stage.clock.now() - 100 * DAY)
    add(stage, Ageing.ALERT_GROUPS, stage.clock.now() - 100 * DAY, stage.clock.now())
    stage.write("UPDATE alert_groups SET due_at = :at", at=stage.clock.now().isoformat())
    assert prune(stage) == {}


def test_versions_of_a_deleted_automation_go_once_no_run_is_left(stage: Stage) -> None:
    gone, running, living = (stage.automation() for _ in range(3))
    for automation_id in (gone, running, living):
        stage.write(
            "INSERT INTO automation_versions (automation_id, version, definition, created_at)"
            " VALUES (:id, 1, '{}', :at)",
            id=automation_id,
            at=stage.clock.now().isoformat(),
        )
    add_runs(stage, running, Runs(made=2 * DAY, ended=2 * DAY))
    deleted_at = (stage.clock.now() - 31 * DAY).isoformat()
    for automation_id in (gone, running):
        stage.write("UPDATE automations SET deleted_at = :at WHERE id = :id", at=deleted_at, id=automation_id)
    assert prune(stage) == {"versions": 1}
    left = {row.automation_id for row in stage.rows("SELECT automation_id FROM automation_versions")}
    assert left == {running, living}


def test_what_a_foreign_worker_left_in_the_registries_is_dropped(stage: Stage) -> None:
    client: Redis = stage.client
    run_ids = stage.pending(2)
    stage.parts.queue.push(QueueKind.MAIN, run_ids, stage.clock.now())
    name = stage.parts.keys.queue(QueueKind.MAIN)
    for registry in ("finished", "failed"):
        client.zadd(f"rq:{registry}:{name}", {f"{registry}-1": 1, f"{registry}-2": 2})
        client.hset(Job.key_for(f"{registry}-1"), "data", "x")
    assert prune(stage) == {"handles": 4}
    assert client.keys("rq:f*") == []
    assert not client.exists(Job.key_for("finished-1"), Job.key_for("failed-1"))
    assert stage.handled() == run_ids


def test_the_oldest_run_that_should_be_gone_is_told(stage: Stage) -> None:
    automation_id = stage.automation()
    now = stage.clock.now()
    expiry = Expiry(now - 30 * DAY, now - 90 * DAY)
    add_runs(stage, automation_id, Runs(status="DEAD_LETTER"))
    add_runs(stage, automation_id, Runs(made=29 * DAY, ended=29 * DAY))
    with stage.database.read() as conn:
        assert oldest_expired(conn, expiry) is None
    add_runs(stage, automation_id, Runs(made=40 * DAY, ended=33 * DAY))
    with stage.database.read() as conn:
        assert oldest_expired(conn, expiry) == now - 33 * DAY


def test_a_pass_begins_every_hour(stage: Stage) -> None:
    pruner = Pruner(stage.parts)
    pruner.take_turn()
    add_runs(stage, stage.automation(), Runs())
    stage.advance(3_599)
    pruner.take_turn()
    assert len(stage.rows("SELECT id FROM automation_runs")) == 1
    stage.advance(1)
    pruner.take_turn()
    assert stage.rows("SELECT id FROM automation_runs") == []


def test_a_pass_that_broke_off_begins_anew(stage: Stage) -> None:
    add_runs(stage, stage.automation(), Runs())
    stage.write("ALTER TABLE run_attempts RENAME TO elsewhere")
    pruner = Pruner(stage.parts)
    with pytest.raises(Exception, match="run_attempts"):
        pruner.take_turn()
    assert len(stage.rows("SELECT id FROM automation_runs")) == 1
    stage.write("ALTER TABLE elsewhere RENAME TO run_attempts")
    pruner.take_turn()
    assert stage.rows("SELECT id FROM automation_runs") == []


def test_runs_are_cut_into_batches_by_all_their_rows() -> None:
    children = {"a": 3, "b": 4, "c": 20, "d": 1}
    assert list(batches(["a", "b", "c", "d", "e"], children, 10)) == [["a", "b"], ["c"], ["d", "e"]]
    assert list(batches([], {}, 10)) == []
