"""Where a claimed run comes to rest: what each move writes, on both databases."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.db.rescue import bury_runs, rescue_runs
from shared.db.settle import finish_runs, release_runs, reset_failures, retry_runs
from shared.db.types import read_instant
from shared.model.moves import SkipReason
from shared.model.runs import Claim, DeadLettered, Failed, HandedBack, Retried, RunError, Succeeded
from shared.model.sizes import OUTPUT_SHOWN_BYTES
from tests.rooms import Room, claim, tree

NOW = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)
LATER = NOW + timedelta(seconds=4)
ERROR = RunError("NET_EPIPE", "gone — ü", 2)
ERROR_TREE = {"code": "NET_EPIPE", "message": "gone — ü", "position": 2}


def running(room: Room, **columns: Any) -> Claim:
    """Store a run and claim it."""
    run_id = room.run(room.automation())
    [found] = claim(room, run_id)
    if columns:
        room.set(run_id, **columns)
    return found.claim


def counts(room: Room, held: Claim) -> tuple[int, int, int]:
    row = room.row(held.run_id)
    return row.retry_count, row.failures, row.crash_count


def test_a_run_that_succeeds_keeps_its_output_and_forgets_the_whole_event(room: Room) -> None:
    held = running(room, event=json.dumps({"big": True}), error=json.dumps(ERROR_TREE))
    output = {"actions": {"1": {"status": 200}}}
    with room.database.begin() as conn:
        assert finish_runs(conn, [(held, Succeeded(None, output))], now=NOW) == {held.run_id}
    row = room.row(held.run_id)
    assert (row.status, row.skip_reason, tree(row.error), tree(row.event)) == ("SUCCEEDED", None, None, None)
    assert (tree(row.output), read_instant(row.ended_at), row.lease_until) == (output, NOW, None)


@pytest.mark.parametrize("reason", SkipReason)
def test_a_skip_is_a_success_with_its_reason(room: Room, reason: SkipReason) -> None:
    held = running(room)
    with room.database.begin() as conn:
        finish_runs(conn, [(held, Succeeded(reason, {}))], now=NOW)
    row = room.row(held.run_id)
    assert (row.status, row.skip_reason, tree(row.output)) == ("SUCCEEDED", reason, {"skipped": reason})


@pytest.mark.parametrize(
    ("outcome", "status"), [(Failed(ERROR), "FAILED"), (DeadLettered(ERROR), "DEAD_LETTER")]
)
def test_a_run_that_fails_keeps_its_error_and_its_event(
    room: Room, outcome: Failed | DeadLettered, status: str
) -> None:
    held = running(room, event=json.dumps({"big": True}), stop_reason="CANCELLED")
    with room.database.begin() as conn:
        finish_runs(conn, [(held, outcome)], now=NOW)
    row = room.row(held.run_id)
    assert (row.status, tree(row.error), tree(row.event)) == (status, ERROR_TREE, {"big": True})
    assert (row.lease_until, row.stop_reason, read_instant(row.ended_at)) == (None, None, NOW)


def test_a_retry_waits_for_its_time_and_counts(room: Room) -> None:
    held = running(room, retry_count=4, failures=1)
    with room.database.begin() as conn:
        assert retry_runs(conn, [(held, Retried(ERROR, LATER, 2))], now=NOW) == {held.run_id}
    row = room.row(held.run_id)
    assert (row.status, tree(row.error), row.lease, row.lease_until) == ("PENDING", ERROR_TREE, 1, None)
    assert (read_instant(row.next_attempt_at), read_instant(row.enqueued_at)) == (LATER, NOW)
    assert counts(room, held) == (5, 2, 0)


def test_a_hand_back_counts_nothing(room: Room) -> None:
    held = running(room, retry_count=4, failures=1, crash_count=1)
    with room.database.begin() as conn:
        assert release_runs(conn, [(held, HandedBack(LATER))], now=NOW) == {held.run_id}
    row = room.row(held.run_id)
    assert (row.status, read_instant(row.next_attempt_at), row.lease_until) == ("PENDING", LATER, None)
    assert counts(room, held) == (4, 1, 1)


def test_a_rescue_counts_a_retry_a_failure_and_a_crash(room: Room) -> None:
    held = running(room, retry_count=4, failures=1, crash_count=1)
    with room.database.begin() as conn:
        assert rescue_runs(conn, [held], now=NOW) == {held.run_id}
    assert (room.status(held.run_id), counts(room, held)) == ("PENDING", (5, 2, 2))


def test_a_burial_keeps_the_retries_and_counts_the_crash(room: Room) -> None:
    held = running(room, retry_count=2, crash_count=2)
    with room.database.begin() as conn:
        assert bury_runs(conn, [(held, ERROR)], now=NOW) == {held.run_id}
    row = room.row(held.run_id)
    assert (row.status, tree(row.error), row.crash_count) == ("DEAD_LETTER", ERROR_TREE, 3)


def test_an_action_that_succeeds_starts_the_counts_of_the_current_action_anew(room: Room) -> None:
    held = running(room, retry_count=4, failures=3, crash_count=2)
    with room.database.begin() as conn:
        reset_failures(conn, [Claim(held.run_id, held.lease + 1)])
    assert counts(room, held) == (4, 3, 2)
    with room.database.begin() as conn:
        reset_failures(conn, [held])
    assert counts(room, held) == (4, 0, 0)


def test_a_set_of_outcomes_moves_each_run_to_its_own_end(room: Room) -> None:
    found = claim(room, *room.runs(room.automation(), [{}] * 60))
    outcomes: list[Succeeded | Failed | DeadLettered] = [
        Succeeded(None, {}),
        Failed(ERROR),
        DeadLettered(ERROR),
    ]
    endings = [(run.claim, outcomes[at % 3]) for at, run in enumerate(found)]
    with room.database.begin() as conn:
        assert len(finish_runs(conn, endings, now=NOW)) == 60
        assert finish_runs(conn, endings, now=NOW) == frozenset()
    assert [room.status(run.claim.run_id) for run in found[:3]] == ["SUCCEEDED", "FAILED", "DEAD_LETTER"]


def test_an_output_beyond_its_limit_is_cut_for_show(room: Room) -> None:
    held = running(room)
    with room.database.begin() as conn:
        finish_runs(conn, [(held, Succeeded(None, {"text": "ü" * OUTPUT_SHOWN_BYTES}))], now=NOW)
    stored = tree(room.row(held.run_id).output)
    assert len(json.dumps(stored, ensure_ascii=False).encode()) <= OUTPUT_SHOWN_BYTES
    assert stored["truncated"] is True


def test_empty_sets_move_nothing(room: Room) -> None:
    with room.database.begin() as conn:
        assert finish_runs(conn, [], now=NOW) == frozenset()
        assert retry_runs(conn, [], now=NOW) == frozenset()
        assert release_runs(conn, [], now=NOW) == frozenset()
        assert rescue_runs(conn, [], now=NOW) == frozenset()
        assert bury_runs(conn, [], now=NOW) == frozenset()
        reset_failures(conn, [])
