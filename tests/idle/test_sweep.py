"""Idle steps that are due, on both databases: each guard and its order, and one run for each step."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from redis import Redis

from shared.db.idle_due import claim_steps, due_steps
from shared.db.types import read_instant, read_json
from shared.keys import observed_key
from shared.model.events import event_from_json
from shared.model.idle_events import idle_step_of
from shared.model.idle_steps import IdleAction, IdleResult, IdleRuleKind
from shared.model.runs import QueueKind
from shared.observations import Measure
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from shared.rules.idle_rules import AssignTarget, AssignType, IdleMode
from tests.arming import conversation, hour, message
from tests.idle_stage import LEGACY, STEPS, IdleStage, bot, open_idle, rule_of
from tests.listening import capture_logs
from timers.idle import IdleSweep
from timers.sweeping import STUCK_AFTER

NOON = hour("12:00")
MINUTE, MOMENT = timedelta(minutes=1), timedelta(milliseconds=1)
DUE = NOON + 10 * MINUTE


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[IdleStage]:
    with open_idle(database_url, redis_url) as opened:
        yield opened


def after(minutes: int) -> datetime:
    return NOON + minutes * MINUTE


def wait(stage: IdleStage, talk: str = "c1") -> None:
    """Let the first step of a conversation wait until `DUE`."""
    stage.tell(bot(NOON, f"{talk}-m1", talk))


def stand(stage: IdleStage) -> tuple[str, str | None]:
    (row,) = stage.rows()
    return row.status, row.reason


def test_s02_ac_1_step_0_fires_after_its_own_duration_and_not_before(stage: IdleStage) -> None:
    wait(stage)
    stage.sweep_at(DUE - MOMENT)
    assert (stand(stage), stage.runs()) == (("pending", None), [])
    stage.sweep_at(DUE)
    (run,), (row,) = stage.runs(), stage.rows()
    assert (row.status, row.run_id, row.ended_at) == ("processing", run.id, None)
    stage.sweep()
    assert len(stage.runs()) == 1


def test_the_run_is_of_no_automation_and_about_the_step_as_it_fires(stage: IdleStage) -> None:
    stage.tell(conversation(NOON - MINUTE, "created", inboxId="shop", status="open"))
    wait(stage)
    stage.sweep_at(DUE)
    (run,), (row,) = stage.runs(), stage.rows()
    assert (run.source, run.source_id, run.status) == ("idle_step", row.id, "PENDING")
    assert (run.automation_id, run.automation_version, run.trigger_type) == (None, 0, "IDLE_STEP")
    assert (run.subject_type, run.subject_id) == ("conversation", "c1")
    assert (run.depth, run.root_run_id, run.title) == (0, run.id, "Idle sequence of agent Agent nora, step 1")
    assert read_instant(run.created_at) == DUE
    event = event_from_json(read_json(run.input))
    assert (event.type, event.workspace_id, event.occurred_at) == ("idle.step_due", "w1", DUE)
    assert event.payload["conversation"] == {"id": "c1", "inboxId": "shop", "status": "open"}
    step = idle_step_of(event)
    assert (step.conversation_id, step.sequence_id, step.step_id) == ("c1", row.id, row.id)
    assert (step.rule, step.mode, step.agent_id) == (IdleRuleKind.AGENT, IdleMode.STEPS, "nora")
    assert (step.step_index, step.step_count, step.is_last) == (0, 3, False)
    assert (step.action, step.message, step.assign) == (IdleAction.FOLLOW_UP, "Still there?", None)
    assert sum(stage.backends.queue.depth(kind) for kind in QueueKind) == 1


def test_an_edit_counts_from_the_fire_on(stage: IdleStage) -> None:
    target = {"type": "division", "division": {"id": "d1", "name": "Support"}}
    wait(stage)
    rule_of(stage, {"steps": [{"action": "assign", "duration": 60, "assign": target}]})
    stage.sweep_at(DUE)
    step = idle_step_of(event_from_json(read_json(stage.runs()[0].input)))
    assert (step.action, step.step_count, step.is_last, step.message) == (IdleAction.ASSIGN, 1, True, None)
    assert step.assign == AssignTarget(AssignType.DIVISION, "d1", "Support")


def late_reply(stage: IdleStage) -> None:
    """Store an answer as another process does right before the sweep, whose events are yet to be taken in."""
    stage.tell(message(after(5), "m2"))
    stage.change("UPDATE idle_steps SET status = 'pending', reason = NULL, ended_at = NULL")


def close(stage: IdleStage) -> None:
    stage.tell(conversation(after(6), "resolved", status="resolved"))
    stage.change("UPDATE idle_steps SET status = 'pending', reason = NULL, ended_at = NULL")


def supersede(stage: IdleStage) -> None:
    stage.tell(message(after(5), "m2", "outgoing"))
    stage.change("UPDATE idle_steps SET status = 'pending', reason = NULL, ended_at = NULL")


def drop_agent(stage: IdleStage) -> None:
    stage.change("UPDATE ai_agents SET deleted_at = updated_at")


def drop_rule(stage: IdleStage) -> None:
    rule_of(stage, {"action": None})


Change = Callable[[IdleStage], None]
STOPS: dict[str, tuple[tuple[Change, ...], tuple[str, str]]] = {
    "closed": ((close,), ("stopped", "conversation_closed")),
    "replied": ((late_reply,), ("stopped", "customer_replied")),
    "superseded": ((supersede,), ("superseded", "superseded")),
    "agent_gone": ((drop_agent,), ("stopped", "agent_gone")),
    "no_rule": ((drop_rule,), ("stopped", "config_changed")),
    "closed_first": ((drop_agent, late_reply, close), ("stopped", "conversation_closed")),
    "replied_before_gone": ((drop_agent, late_reply), ("stopped", "customer_replied")),
}


@pytest.mark.parametrize("name", STOPS)
def test_the_guards_speak_in_their_order(stage: IdleStage, name: str) -> None:
    changes, expected = STOPS[name]
    wait(stage)
    for change in changes:
        change(stage)
    stage.sweep_at(DUE)
    assert (stand(stage), stage.runs()) == (expected, [])
    (row,) = stage.rows()
    assert row.ended_at == DUE


def test_s03_ac_1_a_reply_that_the_sweep_sees_first_sends_nothing_and_is_counted(stage: IdleStage) -> None:
    wait(stage)
    late_reply(stage)
    before = stage.counted(IdleResult.RESET)
    stage.sweep_at(DUE)
    assert (stand(stage), stage.runs()) == (("stopped", "customer_replied"), [])
    assert stage.counted(IdleResult.RESET) == before + 1


def test_f18_a_step_that_was_due_while_all_was_down_asks_what_happened_meanwhile(stage: IdleStage) -> None:
    wait(stage)
    wait(stage, "c2")
    stage.move_to(after(600))
    stage.tell(message(after(300), "m2", talk="c2"))
    stage.sweep()
    assert stage.stands("c2") == [("c2-m1", "stopped", "customer_replied")]
    assert [run.subject_id for run in stage.runs()] == ["c1"]


def index(stage: IdleStage, step_index: int) -> None:
    stage.change("UPDATE idle_steps SET step_index = :at", at=step_index)


def test_with_the_flag_off_a_later_step_stops_and_the_first_one_is_legacy(
    stage: IdleStage,
) -> None:
    rule_of(stage, {**LEGACY, "steps": STEPS})
    wait(stage)
    wait(stage, "c2")
    stage.change("UPDATE idle_steps SET step_index = 1 WHERE conversation_id = 'c2'")
    stage.change("UPDATE flags SET enabled = 0")
    stage.sweep_at(after(60))
    assert stage.stands("c2") == [("c2-m1", "stopped", "config_changed")]
    step = idle_step_of(event_from_json(read_json(stage.runs()[0].input)))
    assert (step.mode, step.action, step.step_count) == (IdleMode.LEGACY, IdleAction.RESOLVE, 1)


@pytest.mark.parametrize("everywhere", [0, 1])
@pytest.mark.parametrize("here", [0, 1])
def test_at_fire_steps_count_only_where_both_halves_of_the_flag_are_on(
    stage: IdleStage, everywhere: int, here: int
) -> None:
    rule_of(stage, {**LEGACY, "steps": STEPS})
    wait(stage)
    stage.change("UPDATE feature_flags SET enabled = :on", on=everywhere)
    stage.change("UPDATE flags SET enabled = :on", on=here)
    stage.sweep_at(after(60))
    step = idle_step_of(event_from_json(read_json(stage.runs()[0].input)))
    assert step.mode is (IdleMode.STEPS if everywhere and here else IdleMode.LEGACY)
    assert step.step_count == (len(STEPS) if everywhere and here else 1)


def test_with_the_flag_off_and_no_legacy_keys_nothing_fires(stage: IdleStage) -> None:
    wait(stage)
    stage.change("UPDATE flags SET enabled = 0")
    stage.sweep_at(DUE)
    assert (stand(stage), stage.runs()) == (("stopped", "config_changed"), [])


def test_a_step_that_the_rule_has_no_more_stops(stage: IdleStage) -> None:
    wait(stage)
    index(stage, 2)
    rule_of(stage, {"steps": STEPS[:2]})
    stage.sweep_at(DUE)
    assert stand(stage) == ("stopped", "config_changed")


def test_a_malformed_rule_stops_the_step_with_one_warning(stage: IdleStage) -> None:
    wait(stage)
    rule_of(stage, {**LEGACY, "steps": "all"})
    with capture_logs() as logs:
        stage.sweep_at(DUE)
    assert stand(stage) == ("stopped", "config_changed")
    (line,) = [line for line in logs if line["log_level"] == "warning"]
    assert (line["event"], line["conversation_id"], line["step_index"]) == ("idle_rule_malformed", "c1", 0)


@pytest.mark.parametrize("change", ["UPDATE channels SET enabled = 0", "DELETE FROM channels"])
def test_a_channel_s_step_stops_with_its_rule(stage: IdleStage, change: str) -> None:
    stage.tell(conversation(NOON - MINUTE, "created", inboxId="shop"), message(NOON, "m1", "outgoing"))
    stage.change(change)
    stage.sweep_at(DUE)
    assert stand(stage) == ("stopped", "agent_gone" if "DELETE" in change else "config_changed")


def test_s02_neg_2_a_fourth_stored_step_is_never_armed_and_is_told_of_once(stage: IdleStage) -> None:
    rule_of(stage, {"steps": [*STEPS, STEPS[0]]})
    wait(stage)
    (row,) = stage.rows()
    with capture_logs() as logs:
        stage.sweep_at(DUE)
    step = idle_step_of(event_from_json(read_json(stage.runs()[0].input)))
    assert (row.step_count, step.step_count) == (3, 3)
    (line,) = [line for line in logs if line["log_level"] == "warning"]
    assert (line["event"], line["ignored"]) == ("idle_steps_ignored", 1)


def test_no_log_holds_what_a_step_says(stage: IdleStage) -> None:
    with capture_logs() as logs:
        wait(stage)
        stage.sweep_at(DUE)
    assert logs
    assert "Still there?" not in str(logs)


def sweep_at_once(stage: IdleStage, sweeps: int) -> None:
    barrier = threading.Barrier(sweeps)

    def sweep() -> None:
        swept = IdleSweep(stage.backends)
        barrier.wait(10)
        swept.pass_once()

    with ThreadPoolExecutor(sweeps) as pool:
        for done in [pool.submit(sweep) for _ in range(sweeps)]:
            done.result(60)


def test_two_sweeps_at_once_make_one_run(stage: IdleStage) -> None:
    wait(stage)
    stage.move_to(DUE)
    sweep_at_once(stage, 2)
    (run,), (row,) = stage.runs(), stage.rows()
    assert (row.status, row.run_id, run.source_id) == ("processing", run.id, row.id)


def test_four_sweeps_at_once_fire_fifty_conversations_once_each(stage: IdleStage) -> None:
    stage.tell(*(bot(NOON, f"m{number}", f"c{number}") for number in range(50)))
    stage.move_to(DUE)
    sweep_at_once(stage, 4)
    rows = stage.rows()
    assert {row.status for row in rows} == {"processing"}
    assert {row.run_id: row.id for row in rows} == {run.id: run.source_id for run in stage.runs()}
    assert len(rows) == 50


def test_a_reply_and_a_sweep_at_once_leave_a_run_or_an_ended_step(stage: IdleStage) -> None:
    """Whoever comes first, no step waits on, and one that has a run is left to it."""
    stage.tell(*(bot(NOON, f"m{number}", f"c{number}") for number in range(20)))
    stage.move_to(DUE)
    barrier = threading.Barrier(2)

    def reply() -> None:
        barrier.wait(10)
        for number in range(20):
            stage.tell(message(DUE, f"r{number}", talk=f"c{number}", seq=number))

    def sweep() -> None:
        barrier.wait(10)
        stage.sweep()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(reply), pool.submit(sweep)]:
            done.result(60)
    rows = stage.rows()
    assert {row.status for row in rows} <= {"processing", "stopped"}
    assert {row.run_id for row in rows if row.status == "processing"} == {run.id for run in stage.runs()}
    assert all(row.run_id is None for row in rows if row.status == "stopped")


def test_a_claim_that_came_to_nothing_comes_back_after_five_minutes(stage: IdleStage) -> None:
    """A sweep that is killed between its claim and its fire leaves just this."""
    wait(stage)
    stage.move_to(DUE)
    with stage.backends.database.begin() as conn:
        assert claim_steps(conn, due_steps(conn, now=DUE, most=9), now=DUE)
    stage.sweep_at(DUE + STUCK_AFTER)
    assert (stand(stage), stage.runs()) == (("processing", None), [])
    with capture_logs() as logs:
        stage.sweep_at(DUE + STUCK_AFTER + MOMENT)
    assert len(stage.runs()) == 1
    assert [line["count"] for line in logs if line["event"] == "idle_claims_returned"] == [1]


def test_a_step_that_has_its_run_never_goes_back(stage: IdleStage) -> None:
    wait(stage)
    stage.sweep_at(DUE)
    stage.sweep_at(DUE + 10 * STUCK_AFTER)
    assert (stand(stage), len(stage.runs())) == (("processing", None), 1)


def test_a_claim_that_was_lost_fires_nothing(stage: IdleStage) -> None:
    wait(stage)
    stage.move_to(DUE)
    with stage.backends.database.begin() as conn:
        claims = claim_steps(conn, due_steps(conn, now=DUE, most=9), now=DUE)
    stage.tell(message(after(5), "m2"))
    IdleSweep(stage.backends).settle(claims)
    assert (stand(stage), stage.runs()) == (("stopped", "customer_replied"), [])


def test_a_step_that_has_its_run_gets_no_second_one(stage: IdleStage) -> None:
    wait(stage)
    stage.sweep_at(DUE)
    (run,) = stage.runs()
    stage.change("UPDATE idle_steps SET status = 'pending', run_id = NULL")
    stage.sweep()
    assert ([each.id for each in stage.runs()], stage.rows()[0].run_id) == ([run.id], run.id)


def test_while_redis_is_away_steps_fire_and_their_runs_wait_for_the_watchdog(stage: IdleStage) -> None:
    wait(stage)
    away = open_redis("unix:///nowhere/redis.sock")
    deaf = replace(stage.backends, redis=away, queue=HandleQueue(away, stage.backends.keys))
    stage.move_to(DUE)
    IdleSweep(deaf).pass_once()
    assert [run.status for run in stage.runs()] == ["PENDING"]


def test_how_late_a_step_fires_is_measured(stage: IdleStage, redis_client: Redis) -> None:
    wait(stage)
    stage.move_to(DUE + timedelta(seconds=4))
    sweep = IdleSweep(stage.backends)
    sweep.pass_once()
    with stage.backends.redis.pipeline(transaction=False) as pipe:
        sweep.lateness.add_to(pipe)
        pipe.execute()
    key = observed_key(stage.backends.keys, Measure.SWEEP_LATENESS)
    found: Any = redis_client.hget(key, "5")
    assert found == b"1"
