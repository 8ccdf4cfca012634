"""Expired leases: reclaimed on the second look, no earlier; buried when no attempt is left; told of once."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from sqlalchemy import text

from shared.db.claims import renew_leases
from shared.model.events import decode_entry
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from tests.watchdog_stage import LEASE, Stage, add_members, close_stage, open_stage
from watchdog.leases import Leases
from watchdog.lost_handles import requeue_lost

RECLAIMED = "watchdog reclaimed stale RUNNING run"


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    opened = open_stage(database_url, redis_url)
    yield opened
    close_stage(opened)


def look_twice(stage: Stage) -> None:
    """Let the leases run out, look, and look again as late as a reclaim needs."""
    leases = Leases(stage.parts)
    stage.advance(61)
    leases.reclaim()
    stage.advance(15)
    leases.reclaim()


def test_an_expired_lease_is_not_reclaimed_on_the_first_look(stage: Stage) -> None:
    claim = stage.running()
    stage.advance(3600)
    Leases(stage.parts).reclaim()
    assert stage.run(claim.run_id).status == "RUNNING"


def test_two_looks_that_are_close_together_reclaim_nothing(stage: Stage) -> None:
    claim = stage.running()
    leases = Leases(stage.parts)
    stage.advance(61)
    for _ in range(3):
        leases.reclaim()
        stage.advance(4.9)
    assert stage.run(claim.run_id).status == "RUNNING"


def test_a_lease_that_still_runs_is_left_alone(stage: Stage) -> None:
    claim = stage.running()
    leases = Leases(stage.parts)
    for _ in range(4):
        leases.reclaim()
        stage.advance(15)
    assert stage.run(claim.run_id).status == "RUNNING"


def test_the_second_look_gives_the_run_back_with_one_retry_more(stage: Stage) -> None:
    claim = stage.running()
    look_twice(stage)
    row = stage.run(claim.run_id)
    assert (row.status, row.retry_count, row.failures, row.crash_count) == ("PENDING", 1, 1, 1)
    assert (row.lease, row.lease_until, row.next_attempt_at) == (claim.lease, None, None)
    assert stage.logs(claim.run_id) == [RECLAIMED]
    assert stage.handles() == [(claim.run_id, stage.clock.now())]


def test_the_attempt_that_crashed_is_on_record(stage: Stage) -> None:
    claim = stage.running()
    look_twice(stage)
    (attempt,) = stage.rows("SELECT * FROM run_attempts WHERE run_id = :id", id=claim.run_id)
    assert (attempt.lease, attempt.outcome, attempt.code) == (claim.lease, "crashed", "WORKER_CRASHED")
    assert attempt.owner == "worker-1"


def test_a_renewed_lease_is_not_reclaimed(stage: Stage) -> None:
    claim = stage.running()
    leases = Leases(stage.parts)
    now = stage.advance(61)
    leases.reclaim()
    with stage.database.begin() as conn:
        renew_leases(conn, [claim], now + LEASE)
    stage.advance(15)
    leases.reclaim()
    assert stage.run(claim.run_id).status == "RUNNING"


def test_a_lease_that_was_renewed_and_ran_out_again_is_looked_at_anew(stage: Stage) -> None:
    claim = stage.running()
    leases = Leases(stage.parts)
    now = stage.advance(61)
    leases.reclaim()
    with stage.database.begin() as conn:
        renew_leases(conn, [claim], now + timedelta(seconds=5))
    stage.advance(15)
    leases.reclaim()
    assert stage.run(claim.run_id).status == "RUNNING"
    stage.advance(15)
    leases.reclaim()
    assert stage.run(claim.run_id).status == "PENDING"


@pytest.mark.parametrize(("failures", "crashes"), [(8, 0), (0, 2)])
def test_a_run_without_an_attempt_left_is_dead_lettered(stage: Stage, failures: int, crashes: int) -> None:
    claim = stage.running(failures=failures, crashes=crashes)
    look_twice(stage)
    row = stage.run(claim.run_id)
    error = row.error if isinstance(row.error, dict) else json.loads(row.error)
    assert (row.status, row.retry_count, row.crash_count) == ("DEAD_LETTER", failures, crashes + 1)
    assert error["code"] == "WORKER_CRASHED"
    assert row.ended_at is not None
    assert stage.logs(claim.run_id) == ["run dead-lettered"]
    assert stage.handles() == []


@pytest.mark.parametrize(("failures", "crashes"), [(7, 0), (0, 1)])
def test_a_run_with_its_last_attempt_left_gets_it(stage: Stage, failures: int, crashes: int) -> None:
    claim = stage.running(failures=failures, crashes=crashes)
    look_twice(stage)
    assert stage.run(claim.run_id).status == "PENDING"


def test_owners_and_admins_are_told_once_each(stage: Stage) -> None:
    add_members(stage, ("owner", "admin", "author", "viewer"))
    claim = stage.running(failures=8)
    look_twice(stage)
    look_twice(stage)
    notices = stage.rows(
        "SELECT n.title, n.body, n.resource_type, n.resource_id, m.role FROM notifications n"
        " JOIN members m ON m.id = n.member_id ORDER BY m.role"
    )
    assert [notice.role for notice in notices] == ["admin", "owner"]
    assert {notice.title for notice in notices} == {'Automation "Tell the shop" failed (worker crash)'}
    assert {(notice.resource_type, notice.resource_id) for notice in notices} == {
        ("automation_run", claim.run_id)
    }
    assert notices[0].body.startswith("Failed after 9 attempts: WORKER_CRASHED — ")


def test_a_dead_letter_is_audited_counted_and_told_to_the_stream(stage: Stage) -> None:
    claim = stage.running(crashes=2)
    look_twice(stage)
    row = stage.run(claim.run_id)
    (audit,) = stage.rows("SELECT * FROM audit")
    assert (audit.action, audit.actor) == (
        "automation.worker_crashed",
        f"SYSTEM automation:{row.automation_id}",
    )
    assert (audit.resource_type, audit.resource_id) == ("automation_run", claim.run_id)
    assert stage.client.get("t:automations:dead_letter:w1") == b"1"
    (entry,) = stage.rows("SELECT * FROM outbox")
    fields = entry.fields if isinstance(entry.fields, dict) else json.loads(entry.fields)
    event = decode_entry("1-1", {name.encode(): value.encode() for name, value in fields.items()})
    assert (event.type, event.id, event.depth) == ("automation.executed", entry.id, 1)
    assert event.payload["status"] == "DEAD_LETTER"
    assert event.payload["durationMs"] == 76_000
    assert event.payload["error"]["code"] == "WORKER_CRASHED"


def test_a_dead_letter_deep_in_a_chain_tells_the_stream_nothing(stage: Stage) -> None:
    stage.running(depth=1, crashes=2)
    look_twice(stage)
    assert stage.rows("SELECT id FROM audit")
    assert stage.rows("SELECT id FROM outbox") == []


def test_watchdogs_at_the_same_moment_reclaim_once(stage: Stage) -> None:
    add_members(stage, ("owner",))
    claims = [stage.running(crashes=2) for _ in range(5)] + [stage.running() for _ in range(5)]
    watchers = [Leases(stage.twin(f"watchdog-{number}")) for number in range(3)]
    stage.advance(61)
    for watcher in watchers:
        watcher.reclaim()
    stage.advance(15)
    barrier = threading.Barrier(len(watchers))

    def reclaim(watcher: Leases) -> None:
        barrier.wait(10)
        watcher.reclaim()

    threads = [threading.Thread(target=reclaim, args=(watcher,)) for watcher in watchers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    statuses = [stage.run(claim.run_id).status for claim in claims]
    assert statuses == ["DEAD_LETTER"] * 5 + ["PENDING"] * 5
    assert len(stage.rows("SELECT id FROM notifications")) == 5
    assert sorted(stage.handled()) == sorted(claim.run_id for claim in claims[5:])
    assert {stage.run(claim.run_id).retry_count for claim in claims[5:]} == {1}


def test_a_reclaim_without_redis_holds_and_is_healed_later(stage: Stage) -> None:
    claim = stage.running()
    away = open_redis("unix:///nowhere/redis.sock")
    blind = replace(stage.parts, redis=away, queue=HandleQueue(away, stage.parts.keys))
    leases = Leases(blind)
    stage.advance(61)
    leases.reclaim()
    stage.advance(15)
    with pytest.raises(RedisConnectionError):
        leases.reclaim()
    assert stage.run(claim.run_id).status == "PENDING"
    assert stage.handled() == []
    stage.advance(31)
    requeue_lost(stage.parts)
    assert stage.handled() == [claim.run_id]
    assert stage.run(claim.run_id).retry_count == 1


def test_a_run_that_somebody_holds_locked_is_passed_over(postgres_url: str, redis_url: str) -> None:
    stage = open_stage(postgres_url, redis_url)
    held, free = stage.running(), stage.running()
    with stage.database.begin() as conn:
        conn.execute(text("SELECT id FROM automation_runs WHERE id = :id FOR UPDATE"), {"id": held.run_id})
        look_twice(stage)
    assert stage.run(held.run_id).status == "RUNNING"
    assert stage.run(free.run_id).status == "PENDING"
    close_stage(stage)
