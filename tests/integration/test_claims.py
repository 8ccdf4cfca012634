"""Claims: one process a run, in order, when it is due; and an earlier lease changes nothing."""

import json
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from shared.db.claims import Lessee, claim_runs, find_claimed, lock_claims, renew_leases
from shared.db.rescue import ExpiredLease, bury_runs, lock_expired, rescue_runs
from shared.db.settle import finish_runs, release_runs, retry_runs
from shared.model.moves import RunStatus
from shared.model.runs import Claim, DeadLettered, Failed, HandedBack, Retried, RunError, Succeeded
from tests.rooms import Room, claim, tree

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ERROR = RunError("CODE", "text", 1)
ROUNDS = 100


def ids(claims: Sequence[Any]) -> list[str]:
    return [found.claim.run_id for found in claims]


def test_a_claim_gives_the_run_as_it_stands(room: Room) -> None:
    automation = room.automation()
    run_id = room.run(automation, {"total": 3})
    [found] = claim(room, run_id, owner="worker-1")
    row = room.row(run_id)
    assert (row.status, row.lease, row.owner) == ("RUNNING", 1, "worker-1")
    assert (found.claim, found.automation_id, found.finished) == (Claim(run_id, 1), automation.id, ())
    assert found.event["payload"] == {"total": 3}
    assert (found.retry_count, found.failures, found.crash_count, found.stop_reason) == (0, 0, 0, None)


def test_a_claim_gives_the_whole_event_where_the_input_was_cut(room: Room) -> None:
    run_id = room.run(room.automation(), {"cut": True})
    whole = {**tree(room.row(run_id).input), "payload": {"whole": True}}
    room.set(run_id, event=json.dumps(whole))
    [found] = claim(room, run_id)
    assert found.event["payload"] == {"whole": True}


def test_runs_come_in_the_order_asked_for_and_each_once(room: Room) -> None:
    automation = room.automation()
    run_ids = room.runs(automation, [{}] * 6)
    wanted = [run_ids[at] for at in (4, 1, 5, 1, 0, 4)]
    assert ids(claim(room, *wanted, "no-such-run")) == [run_ids[at] for at in (4, 1, 5, 0)]
    assert [room.row(run_id).lease for run_id in run_ids] == [1, 1, 0, 0, 1, 1]


def test_of_two_claims_at_once_one_gets_the_run(room: Room) -> None:
    run_ids = room.runs(room.automation(), [{}] * ROUNDS)
    barrier = threading.Barrier(2)
    won: list[str] = []

    def race(owner: str) -> None:
        for run_id in run_ids:
            barrier.wait(30)
            won.extend(ids(claim(room, run_id, owner=owner)))

    threads = [threading.Thread(target=race, args=(owner,)) for owner in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(won) == sorted(run_ids)
    assert {room.row(run_id).lease for run_id in run_ids} == {1}


def test_sets_that_overlap_crosswise_are_shared_out_without_a_deadlock(room: Room) -> None:
    run_ids = room.runs(room.automation(), [{}] * 40)
    barrier = threading.Barrier(2)
    won: list[str] = []

    def race(wanted: list[str]) -> None:
        barrier.wait(30)
        won.extend(ids(claim(room, *wanted)))

    orders = (run_ids, run_ids[::-1])
    threads = [threading.Thread(target=race, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(won) == sorted(run_ids)


@pytest.mark.parametrize(
    ("wait_s", "is_claimed"), [(None, True), (-60, True), (0.9, True), (1.0, True), (1.1, False), (60, False)]
)
def test_a_run_is_claimed_up_to_a_second_before_its_time(
    room: Room, wait_s: float | None, is_claimed: bool
) -> None:
    run_id = room.run(room.automation())
    due = None if wait_s is None else (NOW + timedelta(seconds=wait_s)).isoformat()
    room.set(run_id, next_attempt_at=due)
    lessee = Lessee("w", NOW, timedelta(seconds=60))
    found = room.database.transact(lambda conn: claim_runs(conn, [run_id], lessee))
    assert ids(found) == ([run_id] if is_claimed else [])


@pytest.mark.parametrize(
    ("status", "deleted", "lease", "is_claimed"),
    [
        ("ACTIVE", False, 3, True),
        ("PAUSED", False, 0, True),
        ("PAUSED", False, 1, False),
        ("DRAFT", False, 1, False),
        ("ARCHIVED", True, 1, True),
    ],
)
def test_of_a_paused_automation_only_runs_that_never_began_are_claimed(
    room: Room, status: str, deleted: bool, lease: int, is_claimed: bool
) -> None:
    automation = room.automation()
    run_id = room.run(automation)
    room.set(run_id, lease=lease)
    room.change(
        "UPDATE automations SET status = :status, deleted_at = :at WHERE id = :id",
        status=status,
        at=NOW.isoformat() if deleted else None,
        id=automation.id,
    )
    assert ids(claim(room, run_id)) == ([run_id] if is_claimed else [])


def test_a_run_whose_automation_was_erased_is_claimed_so_that_it_can_end(room: Room) -> None:
    automation = room.automation()
    run_id = room.run(automation)
    room.set(run_id, lease=4)
    room.change("DELETE FROM automations WHERE id = :id", id=automation.id)
    assert ids(claim(room, run_id)) == [run_id]


def test_each_claim_raises_the_lease_and_keeps_the_first_start(room: Room) -> None:
    run_id = room.run(room.automation())
    [first] = claim(room, run_id)
    room.set(run_id, status="PENDING")
    [second] = claim(room, run_id)
    assert (first.claim.lease, second.claim.lease) == (1, 2)
    assert second.started_at == first.started_at


def test_a_lease_that_stands_is_renewed_and_another_is_not(room: Room) -> None:
    first, second = room.runs(room.automation(), [{}, {}])
    claim(room, first, second)
    before = [room.row(run_id).lease_until for run_id in (first, second)]
    until = datetime.now(UTC) + timedelta(hours=1)
    kept = room.database.transact(lambda conn: renew_leases(conn, [Claim(first, 1), Claim(second, 2)], until))
    assert kept == {first}
    after = [room.row(run_id).lease_until for run_id in (first, second)]
    assert (after[0] != before[0], after[1] == before[1]) == (True, True)


Move = Callable[[Connection, Claim], object]

MOVES: dict[str, Move] = {
    "succeed": lambda conn, held: finish_runs(conn, [(held, Succeeded(None, {}))], now=NOW),
    "fail": lambda conn, held: finish_runs(conn, [(held, Failed(ERROR))], now=NOW),
    "dead-letter": lambda conn, held: finish_runs(conn, [(held, DeadLettered(ERROR))], now=NOW),
    "retry": lambda conn, held: retry_runs(conn, [(held, Retried(ERROR, NOW, 1))], now=NOW),
    "release": lambda conn, held: release_runs(conn, [(held, HandedBack(NOW))], now=NOW),
    "rescue": lambda conn, held: rescue_runs(conn, [held], now=NOW),
    "bury": lambda conn, held: bury_runs(conn, [(held, ERROR)], now=NOW),
    "renew": lambda conn, held: renew_leases(conn, [held], NOW),
    "lock": lambda conn, held: lock_claims(conn, [held]),
    "lock-expired": lambda conn, held: lock_expired(conn, [ExpiredLease(held, NOW)]),
    "find": find_claimed,
}


@pytest.mark.parametrize("move", MOVES)
def test_only_a_running_run_moves_and_only_under_its_own_lease(room: Room, move: str) -> None:
    cases = [(status, lease) for status in RunStatus for lease in (6, 7, 8)]
    run_ids = room.runs(room.automation(), [{}] * len(cases))
    for run_id, (status, _) in zip(run_ids, cases, strict=True):
        at = NOW.isoformat()
        room.set(run_id, status=status, lease=7, lease_until=at, started_at=at, owner="w")
    for run_id, (status, lease) in zip(run_ids, cases, strict=True):
        before = room.row(run_id)
        may = (status, lease) == (RunStatus.RUNNING, 7)
        done = room.database.transact(partial(_moved, MOVES[move], Claim(run_id, lease)))
        assert bool(done) is may, (status, lease)
        if not may:
            assert room.row(run_id) == before


def _moved(move: Move, held: Claim, conn: Connection) -> object:
    return move(conn, held)
