"""The engine in this process, on both databases: runs go through it to their next resting state."""

import threading

import pytest

from executors.contract import ActionResult, RunContext
from pipeline.engine import Engine
from shared.errors import FatalError, RetryableError
from shared.ids import new_id
from shared.model.actions import ActionConfig
from shared.model.effects import Notify
from shared.model.events import Context
from tests.rooms import HOOK, NOTIFY, OpenRoom, Room, start, tree
from tests.waiting import poll


def ended(room: Room, run_id: str) -> bool:
    return room.status(run_id) in {"SUCCEEDED", "FAILED", "DEAD_LETTER"}


def test_a_local_action_is_done_with_its_checkpoint(open_here: OpenRoom, engines: list[Engine]) -> None:
    room = open_here()
    owner = room.owner()
    run_id = room.run(room.automation(NOTIFY), {"name": "Ada"})
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(5)
    row = room.row(run_id)
    assert (row.status, row.skip_reason, row.lease, row.retry_count) == ("SUCCEEDED", None, 1, 0)
    notice = room.one("SELECT * FROM notifications")
    assert (notice.member_id, notice.title, notice.resource_id) == (owner, "Hello Ada", run_id)
    assert room.messages(run_id) == [
        "run started",
        "action 1/1 CREATE_NOTIFICATION started",
        "action 1/1 CREATE_NOTIFICATION done",
        "run completed",
    ]
    assert [row.outcome for row in room.all("SELECT outcome FROM run_attempts")] == ["succeeded"]


def test_the_end_of_a_run_is_told_on_the_stream_once(open_here: OpenRoom, engines: list[Engine]) -> None:
    room = open_here()
    run_id = room.run(room.automation(NOTIFY))
    engine = start(room, engines)
    engine.take([run_id])
    poll(lambda: room.parts.redis.xlen(room.parts.keys.stream) == 1)
    _, fields = room.parts.redis.xrange(room.parts.keys.stream)[0]
    assert fields[b"type"] == b"automation.executed"
    assert tree(fields[b"payload"])["runId"] == run_id
    poll(lambda: room.one("SELECT sent_at FROM outbox").sent_at is not None)


@pytest.mark.parametrize(
    ("context", "depth_max", "skipped"),
    [("self", 5, "self_trigger"), ("other", 1, "depth_limit"), ("self", 1, "self_trigger")],
)
def test_a_loop_is_skipped(
    open_here: OpenRoom, engines: list[Engine], context: str, depth_max: int, skipped: str
) -> None:
    room = open_here(automation_max_depth=depth_max)
    automation = room.automation(NOTIFY)
    by = automation.id if context == "self" else new_id()
    run_id = room.run(automation, context=Context(by, new_id(), new_id(), 1))
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(5)
    row = room.row(run_id)
    assert (row.status, row.skip_reason, tree(row.output)) == ("SUCCEEDED", skipped, {"skipped": skipped})
    assert room.all("SELECT * FROM outbox") == []


def test_conditions_that_do_not_hold_skip_the_run_and_say_why(
    open_here: OpenRoom, engines: list[Engine]
) -> None:
    room = open_here()
    conditions = {"all": [{"field": "total", "op": "gt", "value": 100}]}
    run_id = room.run(room.automation(NOTIFY, conditions=conditions), {"total": 50})
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(5)
    assert room.row(run_id).skip_reason == "conditions"
    line = room.one("SELECT data FROM automation_logs WHERE message = 'run skipped: conditions'")
    assert tree(line.data)["failed"][0]["found"] == 50


def test_a_leaf_that_passed_under_not_is_named_as_what_skipped_the_run(
    open_here: OpenRoom, engines: list[Engine]
) -> None:
    room = open_here()
    spam = {"not": {"field": "labels", "op": "contains", "value": "spam"}}
    alive = {"any": [{"field": "vip", "op": "eq", "value": True}, {"field": "total", "op": "gt", "value": 1}]}
    automation = room.automation(NOTIFY, conditions={"all": [alive, spam]})
    run_id = room.run(automation, {"labels": ["spam"], "total": 50})
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(5)
    line = room.one("SELECT data FROM automation_logs WHERE message = 'run skipped: conditions'")
    (leaf,) = tree(line.data)["failed"]
    assert (leaf["path"], leaf["found"]) == ("conditions.all[1].not", ["spam"])


def test_a_retry_resumes_at_the_action_that_failed(open_here: OpenRoom, engines: list[Engine]) -> None:
    calls: list[int] = []

    def flaky(config: ActionConfig, run: RunContext) -> ActionResult:
        calls.append(run.position)
        if run.position == 2 and calls.count(2) < 3:
            raise RetryableError("WEBHOOK_HTTP_RETRIABLE", "503")
        return ActionResult({"position": run.position})

    room = open_here({"SEND_WEBHOOK": flaky})
    run_id = room.run(room.automation(HOOK, HOOK, HOOK))
    engine = start(room, engines)
    for failures in (1, 2):
        engine.take([run_id])
        assert engine.wait_idle(5)
        row = room.row(run_id)
        assert (row.status, row.retry_count, row.failures) == ("PENDING", failures, failures)
        poll(lambda: room.parts.redis.zcard(room.parts.keys.scheduled) == 1)
        room.change("UPDATE automation_runs SET next_attempt_at = NULL WHERE id = :id", id=run_id)
    engine.take([run_id])
    assert engine.wait_idle(5)
    assert room.status(run_id) == "SUCCEEDED"
    assert calls == [1, 2, 2, 2, 3]
    outcomes = [row.outcome for row in room.all("SELECT outcome FROM run_attempts ORDER BY lease")]
    assert outcomes == ["failed", "failed", "succeeded"]
    assert tree(room.row(run_id).output)["actions"]["3"] == {"position": 3}


def test_a_retryable_error_at_the_cap_is_a_dead_letter_with_its_notice(
    open_here: OpenRoom, engines: list[Engine]
) -> None:
    def refuse(config: ActionConfig, run: RunContext) -> ActionResult:
        raise RetryableError("WEBHOOK_HTTP_RETRIABLE", "503 from there")

    room = open_here({"SEND_WEBHOOK": refuse})
    owner = room.owner()
    run_id = room.run(room.automation({**HOOK, "retries": 0}, name="Ship it"))
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(5)
    assert room.status(run_id) == "DEAD_LETTER"
    notice = room.one("SELECT * FROM notifications")
    assert notice.member_id == owner
    assert notice.title == 'Automation "Ship it" dead-lettered'
    assert notice.body == "Failed after 1 attempt: WEBHOOK_HTTP_RETRIABLE — 503 from there"
    assert room.one("SELECT action FROM audit").action == "automation.dead_lettered"
    assert room.messages(run_id)[-1] == "run dead-lettered"
    poll(lambda: room.parts.redis.get(room.parts.keys.dead_letter("w1")) == b"1")


def test_a_fatal_error_fails_the_run_at_once(open_here: OpenRoom, engines: list[Engine]) -> None:
    def refuse(config: ActionConfig, run: RunContext) -> ActionResult:
        raise FatalError("WEBHOOK_HTTP_ERROR", "404")

    room = open_here({"SEND_WEBHOOK": refuse})
    run_id = room.run(room.automation(HOOK, NOTIFY))
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(5)
    row = room.row(run_id)
    assert (row.status, row.retry_count, tree(row.error)["code"]) == ("FAILED", 0, "WEBHOOK_HTTP_ERROR")
    assert tree(row.error)["position"] == 1


def test_a_claim_that_was_taken_over_changes_nothing(open_here: OpenRoom, engines: list[Engine]) -> None:
    at_work, release = threading.Event(), threading.Event()

    def slow(config: ActionConfig, run: RunContext) -> ActionResult:
        at_work.set()
        release.wait(30)
        return ActionResult({})

    room = open_here({"SEND_WEBHOOK": slow})
    run_id = room.run(room.automation(HOOK, NOTIFY))
    engine = start(room, engines)
    engine.take([run_id])
    assert at_work.wait(5)
    room.change("UPDATE automation_runs SET lease = lease + 1, owner = 'another' WHERE id = :id", id=run_id)
    release.set()
    assert engine.wait_idle(5)
    assert (room.status(run_id), room.row(run_id).owner) == ("RUNNING", "another")
    assert room.all("SELECT * FROM run_actions") == []
    assert room.all("SELECT * FROM run_attempts") == []


def test_a_run_that_is_not_pending_is_not_claimed_again(open_here: OpenRoom, engines: list[Engine]) -> None:
    room = open_here()
    run_id = room.run(room.automation(NOTIFY))
    engine = start(room, engines)
    for _ in range(20):
        engine.take([run_id])
    assert engine.wait_idle(5)
    assert room.row(run_id).lease == 1


def test_stop_hands_back_what_has_not_begun_and_what_hangs(
    open_here: OpenRoom, engines: list[Engine]
) -> None:
    at_work, release = threading.Event(), threading.Event()

    def slow(config: ActionConfig, run: RunContext) -> ActionResult:
        at_work.set()
        release.wait(30)
        return ActionResult({})

    room = open_here({"SEND_WEBHOOK": slow}, automations_worker_concurrency=1)
    acting, waiting = room.runs(room.automation(HOOK), [{}, {}])
    engine = start(room, [])
    engine.take([acting, waiting])
    assert at_work.wait(5)
    engine.stop(grace_s=0.2)
    release.set()
    for run_id in (acting, waiting):
        row = room.row(run_id)
        assert (row.status, row.retry_count, row.crash_count) == ("PENDING", 0, 0)
    assert room.parts.redis.zcard(room.parts.keys.scheduled) == 2


def test_what_sql_cannot_hold_ends_its_run_alone(open_here: OpenRoom, engines: list[Engine]) -> None:
    def odd(config: ActionConfig, run: RunContext) -> ActionResult:
        title = "\ud800" if run.event["bad"] else "fine"
        return ActionResult({}, (Notify(title, "b", ("owner",)),))

    room = open_here({"SEND_WEBHOOK": odd})
    room.owner()
    good, bad, fine = room.runs(room.automation(HOOK), [{"bad": False}, {"bad": True}, {"bad": False}])
    engine = start(room, engines)
    engine.take([good, bad, fine])
    assert engine.wait_idle(5)
    assert [room.status(run_id) for run_id in (good, bad, fine)] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert tree(room.row(bad).error)["code"] == "UNRECORDABLE"
    assert len(room.all("SELECT * FROM notifications")) == 2


def test_update_record_changes_the_subject_and_tells_of_it(
    open_here: OpenRoom, engines: list[Engine]
) -> None:
    room = open_here()
    create = {
        "type": "CREATE_RECORD",
        "config": {"database_id": "d1", "record_id": "r1", "properties": {"qty": 4, "total": 0}},
    }
    update = {"type": "UPDATE_RECORD", "config": {"record_id": "r1", "properties": {"total": "{{ qty }}"}}}
    run_id = room.run(room.automation(create, update), {"qty": 4})
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(5)
    assert room.status(run_id) == "SUCCEEDED"
    assert tree(room.one("SELECT data FROM subjects").data) == {"qty": 4, "total": 4}
    outputs = tree(room.row(run_id).output)["actions"]
    assert (outputs["2"]["changed"], outputs["2"]["stale"]) == (["total"], [])
    poll(lambda: room.parts.redis.xlen(room.parts.keys.stream) == 3)
    fields = [entry[1] for entry in room.parts.redis.xrange(room.parts.keys.stream)]
    assert [found[b"type"] for found in fields] == [
        b"record.created",
        b"record.updated",
        b"automation.executed",
    ]
    assert tree(fields[1][b"context"])["depth"] == 1


def test_an_update_of_what_is_not_there_fails_the_run(open_here: OpenRoom, engines: list[Engine]) -> None:
    room = open_here()
    update = {"type": "UPDATE_RECORD", "config": {"record_id": "r9", "properties": {"total": 1}}}
    run_id = room.run(room.automation(update))
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(5)
    row = room.row(run_id)
    assert (row.status, tree(row.error)["code"]) == ("FAILED", "REFERENCE_GONE")


def test_a_deleted_automation_fails_its_run_and_a_paused_one_skips_it(
    open_here: OpenRoom, engines: list[Engine]
) -> None:
    room = open_here()
    gone, paused = room.automation(NOTIFY), room.automation(NOTIFY, status="PAUSED")
    room.change("UPDATE automations SET deleted_at = updated_at WHERE id = :id", id=gone.id)
    first, second = room.run(gone), room.run(paused)
    engine = start(room, engines)
    engine.take([first, second])
    assert engine.wait_idle(5)
    assert tree(room.row(first).error)["code"] == "AUTOMATION_DELETED"
    assert room.row(second).skip_reason == "inactive"


def test_a_stop_that_a_person_asked_for_comes_between_two_actions(
    open_here: OpenRoom, engines: list[Engine]
) -> None:
    rooms: list[Room] = []

    def cancelling(config: ActionConfig, run: RunContext) -> ActionResult:
        rooms[0].change("UPDATE automation_runs SET stop_reason = 'CANCELLED' WHERE id = :id", id=run.run_id)
        return ActionResult({})

    room = open_here({"SEND_WEBHOOK": cancelling})
    rooms.append(room)
    run_id = room.run(room.automation(HOOK, NOTIFY))
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(5)
    row = room.row(run_id)
    assert (row.status, tree(row.error)["code"]) == ("FAILED", "CANCELLED")
    assert len(room.all("SELECT * FROM run_actions")) == 1


def test_a_hundred_runs_end_once_each(open_here: OpenRoom, engines: list[Engine]) -> None:
    room = open_here()
    room.owner()
    run_ids = room.runs(room.automation(NOTIFY), [{"name": str(n)} for n in range(100)])
    engine = start(room, engines)
    engine.take(run_ids[:50])
    engine.take(run_ids[50:])
    assert engine.wait_idle(10)
    assert all(ended(room, run_id) for run_id in run_ids)
    assert room.one("SELECT count(*) AS n FROM notifications").n == 100


def test_a_stop_that_came_during_a_failed_attempt_ends_the_run_before_its_next_action(
    open_here: OpenRoom, engines: list[Engine]
) -> None:
    rooms: list[Room] = []
    calls: list[int] = []

    def refuse(config: ActionConfig, run: RunContext) -> ActionResult:
        calls.append(run.attempt)
        rooms[0].set(run.run_id, stop_reason="CANCELLED")
        raise RetryableError("WEBHOOK_HTTP_RETRIABLE", "503")

    room = open_here({"SEND_WEBHOOK": refuse})
    rooms.append(room)
    run_id = room.run(room.automation(HOOK))
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(5)
    assert room.status(run_id) == "PENDING"
    room.set(run_id, next_attempt_at=None)
    engine.take([run_id])
    assert engine.wait_idle(5)
    row = room.row(run_id)
    assert (row.status, tree(row.error)["code"], calls) == ("FAILED", "CANCELLED", [1])
