"""Lost handles: found by how far the queue has come, replaced once, and never taken for a long queue."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from shared.db.types import must_instant
from shared.model.runs import QueueKind
from tests.watchdog_stage import Stage, close_stage, open_stage
from watchdog.lost_handles import requeue_lost

REQUEUED = "watchdog re-enqueued stale PENDING run"


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    opened = open_stage(database_url, redis_url)
    yield opened
    close_stage(opened)


def enqueue(stage: Stage, run_ids: list[str], kind: QueueKind = QueueKind.MAIN) -> None:
    stage.parts.queue.push(kind, run_ids, stage.clock.now())


def test_a_run_is_given_its_handle_back_after_half_a_minute(stage: Stage) -> None:
    (run_id,) = stage.pending()
    stage.advance(30)
    requeue_lost(stage.parts)
    assert stage.handled() == []
    now = stage.advance(0.001)
    requeue_lost(stage.parts)
    assert stage.handles() == [(run_id, now)]
    row = stage.run(run_id)
    assert (row.status, row.retry_count, row.failures, row.lease) == ("PENDING", 0, 0, 0)
    assert must_instant(row.enqueued_at) == now
    assert stage.logs(run_id) == [REQUEUED]


def test_a_backlog_is_never_multiplied(stage: Stage) -> None:
    run_ids = stage.pending(120)
    enqueue(stage, run_ids)
    for _ in range(5):
        stage.advance(1000)
        requeue_lost(stage.parts)
    assert stage.handled() == run_ids
    assert stage.parts.queue.depth(QueueKind.MAIN) == 3


def test_a_backlog_that_was_requeued_is_not_requeued_again(stage: Stage) -> None:
    run_ids = stage.pending(120)
    for _ in range(5):
        stage.advance(1000)
        requeue_lost(stage.parts)
    assert sorted(stage.handled()) == sorted(run_ids)


def test_a_flushed_redis_gets_every_handle_back(stage: Stage) -> None:
    run_ids = stage.pending(200)
    enqueue(stage, run_ids)
    stage.client.flushdb()
    stage.advance(31)
    requeue_lost(stage.parts)
    assert sorted(stage.handled()) == sorted(run_ids)
    stage.advance(60)
    requeue_lost(stage.parts)
    assert sorted(stage.handled()) == sorted(run_ids)


def test_more_runs_than_a_batch_are_all_found(stage: Stage) -> None:
    run_ids = stage.pending(1100)
    stage.advance(31)
    requeue_lost(stage.parts)
    assert sorted(stage.handled()) == sorted(run_ids)


def test_only_what_the_queue_has_passed_is_lost(stage: Stage) -> None:
    lost = stage.pending(2)
    stage.advance(5)
    recent = stage.pending(2)
    stage.advance(30)
    waiting = stage.pending(1)
    enqueue(stage, waiting)
    stage.advance(100)
    requeue_lost(stage.parts)
    assert sorted(stage.handled()) == sorted([*lost, *waiting])
    assert [stage.logs(run_id) for run_id in recent] == [[], []]


def test_a_retry_that_waits_is_lost_only_when_it_is_overdue(stage: Stage) -> None:
    (run_id,) = stage.pending()
    due = stage.clock.now() + timedelta(seconds=600)
    stage.write(
        "UPDATE automation_runs SET next_attempt_at = :due WHERE id = :id", due=due.isoformat(), id=run_id
    )
    stage.advance(629)
    requeue_lost(stage.parts)
    assert stage.handled() == []
    stage.advance(2)
    requeue_lost(stage.parts)
    assert stage.handled() == [run_id]


def test_each_queue_is_judged_by_its_own_head(stage: Stage) -> None:
    (bulk,) = stage.pending(queue=QueueKind.BULK)
    (main,) = stage.pending()
    enqueue(stage, [main])
    stage.advance(120)
    requeue_lost(stage.parts)
    assert stage.handled(QueueKind.BULK) == [bulk]
    assert stage.handled() == [main]


def test_a_run_of_a_paused_automation_waits_without_a_handle(stage: Stage) -> None:
    (run_id,) = stage.pending()
    row = stage.run(run_id)
    stage.write("UPDATE automations SET status = 'PAUSED' WHERE id = :id", id=row.automation_id)
    stage.write("UPDATE automation_runs SET lease = 1 WHERE id = :id", id=run_id)
    stage.advance(2000)
    requeue_lost(stage.parts)
    assert stage.handled() == []


def test_a_run_that_is_claimed_meanwhile_is_left_alone(stage: Stage) -> None:
    claim = stage.running()
    stage.advance(2000)
    requeue_lost(stage.parts)
    assert stage.handled() == []
    assert stage.logs(claim.run_id) == []


def test_behind_a_head_that_is_not_ours_old_runs_get_one_handle(stage: Stage) -> None:
    stage.client.rpush("rq:queue:t:automations", "something-else")
    (run_id,) = stage.pending()
    stage.advance(600)
    requeue_lost(stage.parts)
    assert stage.logs(run_id) == []
    for _ in range(3):
        stage.advance(901)
        requeue_lost(stage.parts)
    assert stage.logs(run_id) == [REQUEUED]
    assert stage.parts.queue.depth(QueueKind.MAIN) == 2
