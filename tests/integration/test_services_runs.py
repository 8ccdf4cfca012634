"""What a person does to runs, on both databases."""

import json
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from shared.db.claims import finished_actions
from shared.db.outbox import lock_unsent
from shared.db.reads import read_run
from shared.db.run_lists import RunQuery, list_runs
from shared.errors import Conflict, NotFound
from shared.model.events import event_from_json
from shared.model.moves import RunStatus
from shared.model.runs import QueueKind
from shared.redis_port import open_redis
from shared.services.automations import apply_changes, delete, pause
from shared.services.backends import Backends
from shared.services.definitions import Leftovers
from shared.services.runs import (
    Cancelled,
    Insistence,
    ReplayFrom,
    cancel,
    replay,
    start_by_hand,
)
from tests.people import CALLER, NOW, audit_actions, definition, log_messages, run_row, set_run, told_ends

STRANGER = replace(CALLER, workspace_id="w2")
ERROR = json.dumps({"code": "WEBHOOK_HTTP_ERROR", "message": "400", "position": 2})


@pytest.fixture
def run_id(backends: Backends) -> str:
    apply_changes(backends, CALLER, [definition()], Leftovers.KEEP)
    return start_by_hand(backends, CALLER, "welcome", {"orderId": 7})


def fail_run(backends: Backends, run_id: str, status: str = "FAILED") -> None:
    """End a run at its second action, as a worker would."""
    set_run(backends, run_id, status, retry_count=8, failures=9, crash_count=1, error=ERROR)
    with backends.database.begin() as conn:
        conn.execute(
            text(
                "INSERT INTO run_actions (run_id, position, type, lease, output, started_at, ended_at)"
                " VALUES (:id, 1, 'EMIT_EVENT', 1, '{}', :now, :now)"
            ),
            {"id": run_id, "now": NOW.isoformat()},
        )


def test_a_run_started_by_hand_waits_with_its_handle(backends: Backends, run_id: str) -> None:
    run = run_row(backends, run_id)
    assert (run.status, run.trigger_type, run.root_run_id) == (RunStatus.PENDING, "MANUAL", run_id)
    assert backends.queue.depth(QueueKind.MAIN) == 1
    with backends.database.read() as conn:
        detail = read_run(conn, "w1", run_id)
    assert detail is not None
    event = event_from_json(detail.input)
    assert (event.type, event.payload, event.source) == ("manual", {"orderId": 7}, CALLER.actor)
    assert event.stamp[0] > 0
    assert "run.started_by_hand" in audit_actions(backends)


def test_only_an_active_automation_is_run_by_hand(backends: Backends, run_id: str) -> None:
    pause(backends, CALLER, "welcome")
    with pytest.raises(Conflict, match="only one that is ACTIVE") as refused:
        start_by_hand(backends, CALLER, "welcome", {})
    assert refused.value.fix == "activate it first: knockon automations activate welcome"
    with pytest.raises(NotFound):
        start_by_hand(backends, CALLER, "goodbye", {})


def test_a_run_started_by_hand_stands_even_if_it_cannot_be_woken(backends: Backends, run_id: str) -> None:
    broken = replace(backends, queue=type(backends.queue)(open_redis("redis://127.0.0.1:1/0"), backends.keys))
    second = start_by_hand(broken, CALLER, "welcome", {})
    assert run_row(backends, second).status is RunStatus.PENDING
    assert backends.queue.depth(QueueKind.MAIN) == 1


@pytest.mark.parametrize("status", ["FAILED", "DEAD_LETTER"])
def test_a_replay_resumes_with_fresh_counts(backends: Backends, run_id: str, status: str) -> None:
    fail_run(backends, run_id, status)
    done = replay(backends, CALLER, [run_id], ReplayFrom.FAILED_ACTION)
    run = run_row(backends, run_id)
    assert done.replayed == (run_id,)
    assert (run.status, run.retry_count, run.ended_at) == (RunStatus.PENDING, 0, None)
    with backends.database.read() as conn:
        assert len(finished_actions(conn, [run_id])[run_id]) == 1
    assert backends.queue.depth(QueueKind.MAIN) == 2
    assert log_messages(backends, run_id) == ["run replayed"]
    assert audit_actions(backends)[-1] == "run.replayed"


def test_a_replay_from_the_start_drops_the_checkpoints(backends: Backends, run_id: str) -> None:
    fail_run(backends, run_id)
    replay(backends, CALLER, [run_id], ReplayFrom.START)
    with backends.database.read() as conn:
        assert finished_actions(conn, [run_id]) == {}


def test_the_same_replay_twice_is_one(backends: Backends, run_id: str) -> None:
    fail_run(backends, run_id)
    barrier, outcomes = threading.Barrier(2), []

    def click() -> None:
        barrier.wait()
        outcomes.append(replay(backends, CALLER, [run_id], ReplayFrom.START))

    clicks = [threading.Thread(target=click) for _ in range(2)]
    for thread in clicks:
        thread.start()
    for thread in clicks:
        thread.join()
    assert sorted((done.replayed, done.going_on) for done in outcomes) == [((), (run_id,)), ((run_id,), ())]
    assert log_messages(backends, run_id) == ["run replayed"]


@pytest.mark.parametrize("status", ["SUCCEEDED", "CANCELLED"])
def test_what_succeeded_or_was_cancelled_is_not_replayed(
    backends: Backends, run_id: str, status: str
) -> None:
    other = start_by_hand(backends, CALLER, "welcome", {})
    fail_run(backends, other)
    set_run(backends, run_id, status)
    with pytest.raises(Conflict, match=status):
        replay(backends, CALLER, [other, run_id], ReplayFrom.FAILED_ACTION)
    assert run_row(backends, other).status is RunStatus.FAILED


def test_a_run_of_a_deleted_automation_is_not_replayed(backends: Backends, run_id: str) -> None:
    fail_run(backends, run_id)
    delete(backends, CALLER, "welcome")
    with pytest.raises(Conflict, match="was deleted"):
        replay(backends, CALLER, [run_id], ReplayFrom.FAILED_ACTION)


def test_another_workspaces_run_does_not_exist(backends: Backends, run_id: str) -> None:
    with pytest.raises(NotFound):
        replay(backends, STRANGER, [run_id], ReplayFrom.FAILED_ACTION)
    with pytest.raises(NotFound):
        cancel(backends, STRANGER, run_id, Insistence.FORCE)
    with backends.database.read() as conn:
        assert read_run(conn, "w2", run_id) is None


def test_a_waiting_run_is_cancelled_at_once(backends: Backends, run_id: str) -> None:
    assert cancel(backends, CALLER, run_id, Insistence.GENTLE) is Cancelled.AT_ONCE
    run = run_row(backends, run_id)
    assert (run.status, run.ended_at) == (RunStatus.CANCELLED, NOW)
    assert log_messages(backends, run_id) == ["run cancelled"]
    with pytest.raises(Conflict, match="CANCELLED"):
        cancel(backends, CALLER, run_id, Insistence.FORCE)
    assert told_ends(backends) == [(run_id, "CANCELLED")]


def test_a_cancelled_run_deep_in_a_chain_tells_nothing_of_its_end(backends: Backends, run_id: str) -> None:
    set_run(backends, run_id, "PENDING", depth=1)
    cancel(backends, CALLER, run_id, Insistence.GENTLE)
    assert told_ends(backends) == []


def test_the_end_of_a_cancelled_run_waits_in_the_outbox_while_redis_is_away(
    backends: Backends, run_id: str
) -> None:
    gone = replace(backends, redis=open_redis("redis://127.0.0.1:1/0"))
    assert cancel(gone, CALLER, run_id, Insistence.GENTLE) is Cancelled.AT_ONCE
    with backends.database.begin() as conn:
        waiting = lock_unsent(conn, before=NOW + timedelta(seconds=1), most=9)
    assert [entry.run_id for entry in waiting] == [run_id]


def test_a_running_run_stops_only_when_forced(backends: Backends, run_id: str) -> None:
    set_run(backends, run_id, "RUNNING")
    with pytest.raises(Conflict, match="with force"):
        cancel(backends, CALLER, run_id, Insistence.GENTLE)
    for _ in range(2):
        assert cancel(backends, CALLER, run_id, Insistence.FORCE) is Cancelled.STOPPING
    run = run_row(backends, run_id)
    assert (run.status, run.stop_reason) == (RunStatus.RUNNING, "CANCELLED")
    assert log_messages(backends, run_id) == ["run asked to stop"]


def test_lists_are_filtered_and_paged_newest_first(backends: Backends, run_id: str) -> None:
    later = [start_by_hand(backends, CALLER, "welcome", {}) for _ in range(3)]
    set_run(backends, later[1], "FAILED")
    newest_first = [*reversed(later), run_id]
    with backends.database.read() as conn:
        page = list_runs(conn, RunQuery("w1", 2))
        rest = list_runs(conn, RunQuery("w1", 9, before=page[-1].id))
        failed = list_runs(conn, RunQuery("w1", 9, RunStatus.FAILED, page[0].automation_id))
        assert list_runs(conn, RunQuery("w2", 9)) == []
    assert [run.id for run in (*page, *rest)] == newest_first
    assert [run.id for run in failed] == [later[1]]
    assert page[0].automation_key == "welcome"


def test_a_large_payload_is_cut_for_show_and_kept_whole(backends: Backends) -> None:
    manual = definition("by-hand", trigger={"type": "MANUAL"})
    apply_changes(backends, CALLER, [manual], Leftovers.KEEP)
    run_id = start_by_hand(backends, CALLER, "by-hand", {"text": "ä" * 50_000})
    with backends.database.read() as conn:
        detail = read_run(conn, "w1", run_id)
        stored = conn.execute(
            text("SELECT event FROM automation_runs WHERE id = :id"), {"id": run_id}
        ).scalar_one()
    assert detail is not None
    assert detail.input["truncated"] is True
    envelope = json.loads(stored) if isinstance(stored, str) else stored
    assert len(envelope["payload"]["text"]) == 50_000
