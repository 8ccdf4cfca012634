"""Bulk operations: what a preview counts, what a confirmation starts, what becomes of each run, on both."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from shared.db.ageing import Ageing, forget
from shared.db.audit_reads import AuditQuery, list_audit
from shared.errors import Conflict, NotFound
from shared.ids import new_id
from shared.model.bulk import BulkStatus
from shared.model.runs import QueueKind
from shared.redis_port import open_redis
from shared.services.automations import delete
from shared.services.backends import Backends
from shared.services.bulk import cancel_bulk, confirm, preview
from shared.services.runs import ReplayFrom, replay
from shared.time.clock import ManualClock
from tests.bulk import (
    Ended,
    add_ended,
    begin,
    count_runs,
    do_all,
    do_batch,
    fingerprint_of,
    make_automation,
    shown,
    wish,
)
from tests.listening import capture_logs
from tests.people import CALLER, NOW, audit_actions, log_messages, run_row, told_ends
from timers.bulk import BATCH, BulkWork

STRANGER = replace(CALLER, workspace_id="w2")
HOUR = timedelta(hours=1)


@pytest.fixture
def automation_id(backends: Backends) -> str:
    return make_automation(backends)


def test_a_preview_counts_and_changes_nothing(backends: Backends, automation_id: str) -> None:
    add_ended(backends, automation_id, 3)
    add_ended(backends, automation_id, 2, Ended("FAILED"))
    add_ended(backends, automation_id, 4, workspace="w2")
    made = preview(backends, CALLER, wish())
    assert (made.status, made.total, made.is_more, made.done) == (BulkStatus.PREVIEWED, 3, False, 0)
    do_all(backends)
    assert shown(backends, made.id) == made
    assert count_runs(backends, status="DEAD_LETTER", workspace_id="w1") == 3


def test_each_filter_narrows_what_is_meant(backends: Backends, automation_id: str) -> None:
    other = make_automation(backends, "other")
    add_ended(backends, automation_id, 1)
    add_ended(backends, automation_id, 2, Ended(code="MAIL_REFUSED"))
    add_ended(backends, other, 4, Ended(at=NOW - HOUR))
    add_ended(backends, other, 8, Ended("FAILED"))
    add_ended(backends, other, 16, Ended("PENDING", at=NOW - HOUR))
    mark = fingerprint_of(backends, add_ended(backends, other, 32, Ended(message="another"))[0])
    half = (NOW - HOUR / 2).isoformat()
    wanted = {
        39: wish(),
        3: wish(automation="welcome"),
        36: wish(automation=other),
        2: wish(code="MAIL_REFUSED"),
        32: wish(fingerprint=mark),
        35: wish(**{"from": half}),
        4: wish(to=half, status="dead_letter"),
        8: wish(status="FAILED"),
        16: wish("cancel"),
        0: wish("cancel", **{"from": half}),
    }
    counted = {expected: preview(backends, CALLER, each).total for expected, each in wanted.items()}
    assert counted == {expected: expected for expected in wanted}


def test_more_than_are_counted_are_more(
    backends: Backends, automation_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.services.bulk.COUNTED", 4)
    add_ended(backends, automation_id, 5)
    operation_id = begin(backends)
    assert (shown(backends, operation_id).total, shown(backends, operation_id).is_more) == (4, True)
    do_all(backends)
    done = shown(backends, operation_id)
    assert (done.total, done.done, done.is_more) == (5, 5, False)


def test_what_is_unknown_is_not_found(backends: Backends, automation_id: str) -> None:
    operation_id = begin(backends)
    for work in (confirm, cancel_bulk):
        with pytest.raises(NotFound, match="no bulk operation"):
            work(backends, STRANGER, operation_id)
        with pytest.raises(NotFound):
            work(backends, CALLER, new_id())
    with pytest.raises(NotFound, match="no automation"):
        preview(backends, CALLER, wish(automation="nothing"))
    with pytest.raises(NotFound, match="no workspace"):
        preview(backends, replace(CALLER, workspace_id="nowhere"), wish())


def test_replayed_runs_wait_again_with_handles_and_a_line_in_their_logs(
    backends: Backends, automation_id: str
) -> None:
    ids = add_ended(backends, automation_id, 120)
    operation_id = begin(backends)
    do_all(backends)
    done = shown(backends, operation_id)
    assert (done.status, done.done, done.passed, done.ended_at) == (BulkStatus.DONE, 120, 0, NOW)
    assert count_runs(backends, status="PENDING", queue="main") == 120
    assert backends.queue.depth(QueueKind.MAIN) == 3
    run = run_row(backends, ids[7])
    assert (run.retry_count, run.ended_at, fingerprint_of(backends, run.id)) == (0, None, None)
    assert log_messages(backends, ids[7]) == ["run replayed"]


def test_a_large_operation_leaves_the_first_queue_to_others(backends: Backends, automation_id: str) -> None:
    add_ended(backends, automation_id, BATCH + 10)
    begin(backends)
    do_all(backends)
    assert count_runs(backends, status="PENDING", queue="main") == BATCH
    assert count_runs(backends, status="PENDING", queue="bulk") == 10
    assert backends.queue.depth(QueueKind.BULK) == 1


def test_a_second_click_changes_nothing(backends: Backends, automation_id: str) -> None:
    add_ended(backends, automation_id, 3)
    operation_id = begin(backends)
    first = shown(backends, operation_id)
    assert confirm(backends, replace(CALLER, actor="USER cli:bert"), operation_id) == first
    do_all(backends)
    done = shown(backends, operation_id)
    assert confirm(backends, CALLER, operation_id) == done
    do_all(backends)
    assert shown(backends, operation_id) == done
    assert audit_actions(backends)[-3:] == [
        "bulk_operation.created",
        "bulk_operation.confirmed",
        "bulk_operation.done",
    ]


def test_a_cancel_midway_leaves_the_rest_untouched(backends: Backends, automation_id: str) -> None:
    add_ended(backends, automation_id, BATCH + 200)
    operation_id = begin(backends)
    seen = shown(backends, operation_id)
    assert do_batch(backends, operation_id)
    for _ in range(2):
        cancelled = cancel_bulk(backends, CALLER, operation_id)
        assert (cancelled.status, cancelled.done, cancelled.ended_at) == (BulkStatus.CANCELLED, BATCH, NOW)
    assert not BulkWork(backends).move_on(seen)
    do_all(backends)
    assert count_runs(backends, status="DEAD_LETTER") == 200
    with pytest.raises(Conflict, match="was cancelled"):
        confirm(backends, CALLER, operation_id)
    with backends.database.read() as conn:
        newest = list_audit(conn, AuditQuery("w1", most=1))[0]
    assert newest.action == "bulk_operation.cancelled"
    assert newest.detail is not None
    assert newest.detail["after"]["done"] == BATCH
    assert newest.detail["after"]["filter"] == {"status": "DEAD_LETTER"}


def test_a_preview_may_be_dropped_and_what_is_done_may_not(backends: Backends, automation_id: str) -> None:
    dropped = preview(backends, CALLER, wish())
    assert cancel_bulk(backends, CALLER, dropped.id).status is BulkStatus.CANCELLED
    operation_id = begin(backends)
    do_all(backends)
    with pytest.raises(Conflict, match="DONE"):
        cancel_bulk(backends, CALLER, operation_id)


def test_a_run_that_somebody_replayed_meanwhile_is_counted_as_skipped(
    backends: Backends, automation_id: str
) -> None:
    ids = add_ended(backends, automation_id, 5)
    operation_id = begin(backends)
    replay(backends, CALLER, [ids[2]], ReplayFrom.FAILED_ACTION)
    do_all(backends)
    done = shown(backends, operation_id)
    assert (done.done, done.skipped) == (4, {"moved_meanwhile": 1})
    assert log_messages(backends, ids[2]) == ["run replayed"]


def test_a_run_that_moves_between_the_look_and_the_lock_is_skipped(
    backends: Backends, automation_id: str
) -> None:
    ids = add_ended(backends, automation_id, 3)
    operation_id = begin(backends)
    seen = shown(backends, operation_id)
    replay(backends, CALLER, [ids[0]], ReplayFrom.FAILED_ACTION)
    assert BulkWork(backends).settle(seen, ids)
    assert shown(backends, operation_id).skipped == {"moved_meanwhile": 1}
    assert log_messages(backends, ids[0]) == ["run replayed"]


def test_runs_of_a_deleted_automation_are_skipped_with_the_reason(
    backends: Backends, automation_id: str
) -> None:
    add_ended(backends, automation_id, 2)
    add_ended(backends, make_automation(backends, "other"), 3)
    operation_id = begin(backends)
    delete(backends, CALLER, "welcome")
    do_all(backends)
    done = shown(backends, operation_id)
    assert (done.done, done.skipped) == (3, {"automation_deleted": 2})
    assert count_runs(backends, status="DEAD_LETTER", automation_id=automation_id) == 2


def test_what_fails_or_is_made_after_the_preview_is_left_alone(
    backends: Backends, automation_id: str
) -> None:
    add_ended(backends, automation_id, 2)
    late = add_ended(backends, automation_id, 1, Ended(at=NOW + HOUR))
    operation_id = begin(backends)
    made = add_ended(backends, automation_id, 1)
    do_all(backends)
    assert shown(backends, operation_id).done == 2
    assert [run_row(backends, each).status for each in (*late, *made)] == ["DEAD_LETTER"] * 2


def test_a_replay_from_the_start_forgets_what_was_done(backends: Backends, automation_id: str) -> None:
    resumed, restarted = (add_ended(backends, automation_id, 2, Ended(code=code)) for code in ("A", "B"))
    with backends.database.begin() as conn:
        conn.execute(
            text(
                "INSERT INTO run_actions (run_id, position, type, lease, output, started_at, ended_at)"
                " SELECT id, 1, 'EMIT_EVENT', 1, '{}', created_at, created_at FROM automation_runs"
            )
        )
    begin(backends, wish(code="A"))
    begin(backends, wish(code="B", from_start=True))
    do_all(backends)
    with backends.database.read() as conn:
        left = set(conn.execute(text("SELECT run_id FROM run_actions")).scalars())
    assert left == set(resumed)
    assert set(restarted).isdisjoint(left)


def test_waiting_runs_are_cancelled_and_their_ends_told(backends: Backends, automation_id: str) -> None:
    ids = add_ended(backends, automation_id, 3, Ended("PENDING"))
    operation_id = begin(backends, wish("cancel"))
    do_all(backends)
    assert shown(backends, operation_id).done == 3
    assert [run_row(backends, each).stop_reason for each in ids] == ["CANCELLED"] * 3
    assert log_messages(backends, ids[0]) == ["run cancelled"]
    assert sorted(told_ends(backends)) == [(each, "CANCELLED") for each in ids]


def test_without_redis_the_rows_are_moved_and_the_watchdog_has_to_wake_them(
    backends: Backends, automation_id: str
) -> None:
    add_ended(backends, automation_id, 2)
    operation_id = begin(backends)
    BulkWork(replace(backends, redis=open_redis("redis://127.0.0.1:1/0"))).pass_once()
    assert shown(backends, operation_id).status is BulkStatus.DONE
    assert count_runs(backends, status="PENDING") == 2


def test_two_processes_share_an_operation_and_no_run_has_two_turns(
    backends: Backends, automation_id: str
) -> None:
    ids = add_ended(backends, automation_id, 3 * BATCH + 7)
    operation_id = begin(backends)
    barrier = threading.Barrier(2)

    def work() -> None:
        barrier.wait(10)
        while shown(backends, operation_id).status is not BulkStatus.DONE:
            BulkWork(backends).pass_once()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    done = shown(backends, operation_id)
    assert (done.done, done.passed) == (len(ids), 0)
    with backends.database.read() as conn:
        lines = conn.execute(text("SELECT count(*) FROM automation_logs")).scalar_one()
    assert lines == len(ids)


class Hasty(ManualClock):
    """A clock on which a second passes whenever somebody looks how long something takes."""

    def monotonic(self) -> float:
        self.advance(timedelta(seconds=1))
        return super().monotonic()


def test_a_pass_ends_with_its_turn_whatever_is_left(backends: Backends, automation_id: str) -> None:
    add_ended(backends, automation_id, 2 * BATCH)
    operation_id = begin(backends)
    BulkWork(replace(backends, clock=Hasty(NOW))).pass_once()
    assert shown(backends, operation_id).done == BATCH


def test_one_that_sql_does_not_take_stands_in_no_others_way(backends: Backends, automation_id: str) -> None:
    add_ended(backends, automation_id, 2, Ended(code="A"))
    add_ended(backends, automation_id, 2, Ended(code="B"))
    begin(backends, wish(code="A"))
    do_all(backends)
    only_one = "CREATE UNIQUE INDEX only_one ON bulk_operations ((CASE WHEN done > 0 THEN 1 END))"
    broken, whole = begin(backends, wish(code="B")), begin(backends, wish(code="C"))
    with backends.database.begin() as conn:
        conn.execute(text(only_one))
    with capture_logs() as logs:
        do_all(backends)
    with backends.database.begin() as conn:
        conn.execute(text("DROP INDEX only_one"))
    assert shown(backends, whole).status is BulkStatus.DONE
    assert (shown(backends, broken).status, shown(backends, broken).done) == (BulkStatus.CONFIRMED, 0)
    failures = [line for line in logs if line["event"] == "bulk_operation_failed"]
    assert {line["operation_id"] for line in failures} == {broken}
    do_all(backends)
    assert shown(backends, broken).done == 2


def test_operations_take_turns(backends: Backends, automation_id: str) -> None:
    other = make_automation(backends, "other")
    add_ended(backends, automation_id, 2 * BATCH)
    add_ended(backends, other, 2 * BATCH)
    first, second = begin(backends, wish(automation="welcome")), begin(backends, wish(automation="other"))
    work = BulkWork(backends)
    for operation in work.going():
        work.move_on(operation)
    assert [shown(backends, each).done for each in (first, second)] == [BATCH, BATCH]


def test_what_is_over_is_forgotten_and_what_goes_on_never(backends: Backends, automation_id: str) -> None:
    add_ended(backends, automation_id, 1)
    previewed = preview(backends, CALLER, wish()).id
    done = begin(backends)
    do_all(backends)
    going = begin(backends)
    later = datetime.now(UTC) + timedelta(days=1)
    with backends.database.begin() as conn:
        assert forget(conn, Ageing.BULK_OPERATIONS, before=NOW, most=9) == 0
        assert forget(conn, Ageing.BULK_OPERATIONS, before=later, most=9) == 2
    assert shown(backends, going).status is BulkStatus.CONFIRMED
    for operation_id in (previewed, done):
        with pytest.raises(NotFound):
            shown(backends, operation_id)
