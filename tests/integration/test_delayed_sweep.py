"""Pending executions that are due, on both databases: each guard and its order, and one run for each row."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from redis import Redis

from shared.db.pending_due import claim_due, due_rows
from shared.db.pending_reads import find_pending_of_run
from shared.db.pending_turns import Turn, move_pending, revive_pending
from shared.db.types import read_instant, read_json
from shared.ids import new_id
from shared.keys import delayed_key, observed_key
from shared.model.events import Context
from shared.model.messages import Direction
from shared.model.pending import PendingStatus
from shared.model.runs import QueueKind
from shared.observations import Measure
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from shared.rules.episodes import state_episode
from shared.rules.talk import Talk
from shared.services.automations import activate, pause
from shared.time.clock import epoch_ms
from tests.delayed_stage import (
    EXPIRY,
    HOUR,
    PENDING_NOW,
    Stage,
    arm,
    delete,
    flip,
    open_stage,
    run_of,
    say,
    told,
    wait,
    wait_for,
)
from tests.listening import capture_logs
from tests.people import CALLER
from timers.delayed import DelayedSweep
from timers.sweeping import STUCK_AFTER

NOBODY_ANSWERED = Talk(None, None, None, None, None)
MOMENT = timedelta(milliseconds=1)

Follow = Callable[..., frozenset[str]]


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    with open_stage(database_url, redis_url) as opened:
        yield opened


def stale(stage: Stage, **given: Any) -> str:
    """Let the conversation c1 wait for four hours in the state `pending`; give its row's id."""
    stage.put(status="pending")
    return wait(stage, stage.rule(**given))


def test_a_row_fires_when_it_is_due_and_not_before(stage: Stage) -> None:
    found = stale(stage)
    stage.after(4 * HOUR - MOMENT).sweep()
    assert (stage.stands(found), len(stage.runs())) == (("pending", None), 0)
    stage.after(MOMENT).sweep()
    (run,) = stage.runs()
    assert stage.stands(found) == ("executed", None)
    assert stage.pending(found).run_id == run.id
    stage.sweep()
    assert len(stage.runs()) == 1


def test_the_run_is_about_the_event_that_armed_the_row(stage: Stage) -> None:
    found = stale(stage)
    stage.after(4 * HOUR).sweep()
    run, row = run_of(stage, found), stage.pending(found)
    assert (run.source, run.source_id, run.status) == ("delayed", found, "PENDING")
    assert (run.trigger_type, run.automation_version) == ("CONVERSATION_UPDATED", 1)
    assert (run.subject_type, run.subject_id) == ("conversation", "c1")
    assert (run.depth, run.root_run_id) == (0, run.id)
    assert read_json(run.input) == row.trigger_event
    assert run.entry_id == row.trigger_event["entryId"]
    assert read_instant(run.created_at) == stage.clock.now()
    assert row.ended_at is None
    assert sum(stage.backends.queue.depth(kind) for kind in QueueKind) == 1


def test_depth_and_root_are_those_of_the_event_that_armed(stage: Stage) -> None:
    stage.put(status="pending")
    context = Context(new_id(), new_id(), new_id(), 3)
    found = wait(stage, stage.rule(), context=context)
    stage.after(4 * HOUR).sweep()
    run = run_of(stage, found)
    assert (run.depth, run.root_run_id) == (3, context.root_run_id)


def test_a_large_event_is_kept_whole_beside_what_is_shown(stage: Stage) -> None:
    stage.put(status="pending", transcript="x" * 90_000)
    found = wait(stage, stage.rule())
    stage.after(4 * HOUR).sweep()
    run = run_of(stage, found)
    assert read_json(run.event) == stage.pending(found).trigger_event
    assert len(str(read_json(run.input))) < 90_000


def test_current_conditions_decide_and_an_old_row_keeps_its_due_time(stage: Stage) -> None:
    found = stale(stage)
    due_at = stage.pending(found).due_at
    stage.rule(delay=480, conditions={"field": "conversation.status", "op": "eq", "value": "open"})
    assert stage.pending(found).due_at == due_at
    stage.after(4 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "conditions_changed")
    assert stage.pending(found).ended_at == stage.clock.now()


def test_an_automation_that_no_longer_waits_lets_what_waits_fire(stage: Stage) -> None:
    found = stale(stage)
    stage.rule(delay=None)
    stage.after(4 * HOUR).sweep()
    assert stage.stands(found) == ("executed", None)


def test_what_is_due_for_longer_than_72_hours_is_skipped_as_expired(stage: Stage) -> None:
    late = stale(stage)
    stage.put("c2", status="pending")
    stage.after(MOMENT)
    in_time = wait(stage, stage.rule(), "c2", due_at=stage.pending(late).due_at + MOMENT)
    stage.after(4 * HOUR + EXPIRY).sweep()
    assert stage.stands(late) == ("skipped", "expired")
    assert stage.stands(in_time) == ("executed", None)
    assert stage.pending(late).ended_at is None


@pytest.mark.parametrize("status", ["PAUSED", "DRAFT", "ARCHIVED"])
def test_what_waits_for_an_automation_that_is_not_active_is_skipped(stage: Stage, status: str) -> None:
    found = stale(stage)
    stage.rule(status=status)
    stage.after(4 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "rule_inactive")
    assert stage.pending(found).ended_at == stage.clock.now()


def test_a_state_of_which_events_tell_late_fires_once_and_has_its_full_time(stage: Stage) -> None:
    """The matcher was away for longer than the delay and `DELAY_EXPIRY_H` together."""
    stage.put(status="pending")
    rule = stage.rule()
    found = wait(stage.after(4 * HOUR + EXPIRY + MOMENT), rule)
    stage.sweep()
    assert stage.stands(found) == ("executed", None)
    stage.sweep()
    assert len(stage.runs()) == 1


def test_what_was_armed_late_expires_where_the_sweep_is_away_after_that(stage: Stage) -> None:
    stage.put(status="pending")
    rule = stage.rule()
    found = wait(stage.after(4 * HOUR + EXPIRY), rule)
    stage.after(EXPIRY + MOMENT).sweep()
    assert (stage.stands(found), stage.runs()) == (("skipped", "expired"), [])


def test_a_state_that_is_older_than_a_short_expiry_fires(stage: Stage) -> None:
    stage.put(status="pending")
    rule = stage.rule(delay=1)
    found = wait(stage.after(HOUR), rule)
    stage.sweep(expiry=MOMENT)
    assert stage.stands(found) == ("executed", None)


@pytest.mark.parametrize("follow", [move_pending, revive_pending])
def test_what_hangs_on_a_message_that_is_read_late_has_its_full_time(stage: Stage, follow: Follow) -> None:
    found = chased(stage)
    now = stage.after(24 * HOUR + EXPIRY + MOMENT).clock.now()
    if follow is revive_pending:
        stage.change("UPDATE pending_executions SET status = 'skipped', ended_at = due_at")
    row = stage.pending(found)
    with stage.backends.database.begin() as conn:
        turn = Turn(found, row.version, row.episode, row.trigger_event, row.due_at)
        assert follow(conn, [turn], now=now) == {found}
    stage.sweep()
    assert stage.stands(found) == ("executed", None)


def test_what_has_expired_ends_though_nothing_else_of_it_can_be_read(stage: Stage) -> None:
    found = stale(stage)
    stage.change("UPDATE automations SET definition = '[]'")
    stage.after(4 * HOUR + EXPIRY + MOMENT).sweep()
    assert stage.stands(found) == ("skipped", "expired")


def test_an_automation_that_was_paused_for_a_while_fires_what_is_due_later(stage: Stage) -> None:
    found = stale(stage)
    pause(stage.backends, CALLER, "stale")
    stage.after(2 * HOUR).sweep()
    activate(stage.backends, CALLER, "stale")
    stage.after(2 * HOUR).sweep()
    assert stage.stands(found) == ("executed", None)


def test_what_waits_for_a_subject_that_was_deleted_is_skipped(stage: Stage) -> None:
    found = stale(stage)
    delete(stage)
    stage.after(4 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "subject_gone")
    assert stage.pending(found).ended_at == stage.clock.now()


def test_what_waits_for_a_subject_that_is_not_there_is_skipped(stage: Stage) -> None:
    found = stale(stage)
    stage.change("DELETE FROM subjects")
    stage.after(4 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "subject_gone")


def test_conditions_that_are_false_now_skip_the_row(stage: Stage) -> None:
    found = stale(stage)
    stage.put(status="resolved")
    stage.after(4 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "conditions_changed")
    assert stage.runs() == []


def test_a_flip_that_nobody_saw_ends_the_episode_and_the_next_one_waits(stage: Stage) -> None:
    automation_id = stage.rule()
    stage.put(status="pending")
    found = wait(stage, automation_id)
    flip(stage.after(HOUR))
    began = stage.subject().newest
    stage.after(3 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "episode_moved")
    (anew,) = stage.rows("SELECT id FROM pending_executions WHERE id <> :id", id=found)
    row = stage.pending(anew.id)
    assert row.episode == state_episode(began)
    assert (row.status, row.due_at) == (PendingStatus.PENDING, row.episode.started_at + 4 * HOUR)
    assert row.trigger_event == stage.pending(found).trigger_event
    assert stage.stands(anew.id) == ("pending", None)
    stage.after(HOUR).sweep()
    assert stage.stands(anew.id) == ("executed", None)
    assert len(stage.runs()) == 1


def test_the_delay_of_now_holds_for_the_episode_that_began_anew(stage: Stage) -> None:
    found = stale(stage)
    flip(stage.after(HOUR))
    stage.rule(delay=600)
    stage.after(3 * HOUR).sweep()
    (anew,) = stage.rows("SELECT id FROM pending_executions WHERE id <> :id", id=found)
    row = stage.pending(anew.id)
    assert row.due_at - row.episode.started_at == 10 * HOUR


def test_an_episode_that_began_anew_is_due_no_earlier_than_its_automation_became_active(stage: Stage) -> None:
    found = stale(stage)
    flip(stage.after(HOUR))
    active = stage.clock.now() + 20 * HOUR
    stage.change("UPDATE automations SET activated_ms = :ms", ms=epoch_ms(active))
    stage.after(3 * HOUR).sweep()
    (anew,) = stage.rows("SELECT id FROM pending_executions WHERE id <> :id", id=found)
    assert stage.pending(anew.id).due_at == active


def test_an_episode_that_has_its_row_already_gets_no_second_one(stage: Stage) -> None:
    automation_id = stage.rule()
    earlier = state_episode(stage.put(status="pending").newest)
    flip(stage.after(HOUR))
    over = wait(stage, automation_id)
    stage.change("UPDATE pending_executions SET status = 'executed', ended_at = due_at")
    found = arm(stage, automation_id, told(stage, stage.subject()), earlier)
    stage.after(3 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "episode_moved")
    assert stage.stands(over) == ("executed", None)
    assert len(stage.rows("SELECT id FROM pending_executions")) == 2


def test_a_change_among_matching_values_does_not_end_an_episode(stage: Stage) -> None:
    either = {"field": "conversation.status", "op": "in", "value": ["pending", "open"]}
    stage.put(status="pending")
    found = wait(stage, stage.rule(conditions=either))
    stage.after(HOUR).put(status="open")
    stage.after(HOUR).put(labels=["vip"])
    stage.after(2 * HOUR).sweep()
    assert stage.stands(found) == ("executed", None)


def test_a_start_earlier_than_the_row_knows_is_the_same_episode(stage: Stage) -> None:
    automation_id = stage.rule()
    subject = stage.put(status="pending")
    later = (subject.newest[0] + 60_000, 0)
    found = arm(stage, automation_id, told(stage, subject), state_episode(later))
    stage.after(5 * HOUR).sweep()
    assert stage.stands(found) == ("executed", None)


GUARDS = ("expired", "rule_inactive", "subject_gone", "episode_moved")


@pytest.mark.parametrize("first", range(len(GUARDS)))
def test_the_guards_speak_in_their_order(stage: Stage, first: int) -> None:
    """Every guard from `first` on would say no; the row names the first of them."""
    stage.put(status="pending")
    found = wait(stage, stage.rule())
    flip(stage)
    if first <= GUARDS.index("subject_gone"):
        delete(stage)
    if first <= GUARDS.index("rule_inactive"):
        pause(stage.backends, CALLER, "stale")
    stage.after(4 * HOUR)
    if first == GUARDS.index("expired"):
        stage.after(EXPIRY + MOMENT)
    stage.sweep()
    assert stage.stands(found) == ("skipped", GUARDS[first])


def chased(stage: Stage) -> str:
    """Let an agent's message of c1 wait for the customer's answer; give the row's id."""
    stage.put(status="open")
    rule = stage.rule(
        delay=1_440,
        trigger={"type": "MESSAGE_CREATED", "config": {}},
        conditions={"field": "message.direction", "op": "eq", "value": "outgoing"},
    )
    return wait_for(stage, rule, say(stage, Direction.OUTGOING), NOBODY_ANSWERED)


def test_a_message_that_nobody_answered_fires(stage: Stage) -> None:
    found = chased(stage)
    stage.after(24 * HOUR).sweep()
    assert stage.stands(found) == ("executed", None)
    assert run_of(stage, found).trigger_type == "MESSAGE_CREATED"


def test_an_answer_moves_the_episode(stage: Stage) -> None:
    found = chased(stage)
    say(stage.after(3 * HOUR))
    stage.after(21 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "episode_moved")
    assert stage.rows("SELECT id FROM pending_executions WHERE id <> :id", id=found) == []


def test_an_answer_that_a_machine_wrote_moves_nothing(stage: Stage) -> None:
    found = chased(stage)
    say(stage.after(3 * HOUR), auto_submitted=True)
    stage.after(21 * HOUR).sweep()
    assert stage.stands(found) == ("executed", None)


@pytest.mark.parametrize("by", ["reply", "resolve"])
def test_a_customer_who_was_answered_waits_no_longer(stage: Stage, by: str) -> None:
    stage.put(status="open")
    rule = stage.rule(trigger={"type": "MESSAGE_CREATED", "config": {}}, conditions=None)
    found = wait_for(stage, rule, say(stage), NOBODY_ANSWERED)
    stage.after(HOUR)
    say(stage, Direction.OUTGOING) if by == "reply" else stage.put(status="resolved")
    stage.after(3 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "episode_moved")


def test_conditions_read_the_message_and_the_conversation_of_now(stage: Stage) -> None:
    stage.put(status="open")
    both = {"all": [{"field": "message.content", "op": "contains", "value": "Hello"}, PENDING_NOW]}
    rule = stage.rule(trigger={"type": "MESSAGE_CREATED", "config": {}}, conditions=both)
    found = wait_for(stage, rule, say(stage), NOBODY_ANSWERED)
    stage.after(4 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "conditions_changed")


def test_a_message_that_is_gone_moves_the_episode(stage: Stage) -> None:
    found = chased(stage)
    stage.change("DELETE FROM messages")
    stage.after(24 * HOUR).sweep()
    assert stage.stands(found) == ("skipped", "episode_moved")


def test_four_sweeps_at_once_make_one_run_a_row(stage: Stage) -> None:
    automation_id = stage.rule()
    for number in range(40):
        stage.put(f"c{number}", status="pending")
        wait(stage, automation_id, f"c{number}")
    stage.after(4 * HOUR)
    barrier = threading.Barrier(4)

    def sweep() -> None:
        swept = DelayedSweep(stage.backends, EXPIRY)
        barrier.wait(10)
        swept.pass_once()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(sweep) for _ in range(4)]:
            done.result(60)
    rows = stage.rows("SELECT id, status, run_id FROM pending_executions ORDER BY id")
    runs = {run.id: run.source_id for run in stage.runs()}
    assert {row.status for row in rows} == {"executed"}
    assert {row.run_id: row.id for row in rows} == runs
    assert len(runs) == 40


def test_a_claim_that_came_to_nothing_comes_back_after_five_minutes(stage: Stage) -> None:
    """A sweep that is killed between its claim and its fire leaves just this."""
    found = stale(stage)
    now = stage.after(4 * HOUR).clock.now()
    with stage.backends.database.begin() as conn:
        assert claim_due(conn, due_rows(conn, now=now, most=9), now=now)
    stage.after(STUCK_AFTER).sweep()
    assert (stage.stands(found), stage.runs()) == (("processing", None), [])
    with capture_logs() as logs:
        stage.after(MOMENT).sweep()
    assert stage.stands(found) == ("executed", None)
    assert len(stage.runs()) == 1
    assert [line["count"] for line in logs if line["event"] == "delayed_claims_returned"] == [1]


def test_a_claim_that_was_lost_fires_nothing(stage: Stage) -> None:
    found = stale(stage)
    now = stage.after(4 * HOUR).clock.now()
    with stage.backends.database.begin() as conn:
        claims = claim_due(conn, due_rows(conn, now=now, most=9), now=now)
    stage.change("UPDATE pending_executions SET status = 'skipped', version = version + 1")
    DelayedSweep(stage.backends, EXPIRY).settle(claims)
    assert (stage.pending(found).status, stage.runs()) == (PendingStatus.SKIPPED, [])


def test_a_row_that_has_its_run_gets_no_second_one(stage: Stage) -> None:
    found = stale(stage)
    stage.after(4 * HOUR).sweep()
    (run,) = stage.runs()
    stage.change("UPDATE pending_executions SET status = 'pending', run_id = NULL")
    stage.sweep()
    assert [each.id for each in stage.runs()] == [run.id]
    assert stage.pending(found).run_id == run.id


def test_a_row_whose_run_stood_down_may_have_another_one(stage: Stage) -> None:
    found = stale(stage)
    stage.after(4 * HOUR).sweep()
    first = run_of(stage, found).id
    stage.change("UPDATE automation_runs SET status = 'SUCCEEDED', skip_reason = 'conditions_changed'")
    stage.change("UPDATE pending_executions SET status = 'pending'")
    stage.sweep()
    second = run_of(stage, found)
    assert (second.id != first, second.status) == (True, "PENDING")
    assert second.source_id.partition(":")[0] == found
    with stage.backends.database.read() as conn:
        shown = [find_pending_of_run(conn, "w1", run_id) for run_id in (first, second.id)]
    assert [each and each.id for each in shown] == [found, found]


UNREADABLE = {
    "no event": "UPDATE pending_executions SET trigger_event = '{}' WHERE id = :row",
    "a list": "UPDATE pending_executions SET trigger_event = '[]' WHERE id = :row",
    "a text": "UPDATE pending_executions SET trigger_event = '\"x\"' WHERE id = :row",
    "an anchor of no kind": "UPDATE pending_executions SET anchor = 'moon' WHERE id = :row",
    "no trigger": "UPDATE automations SET definition = '{}' WHERE id = :rule",
    "no definition": "UPDATE automations SET definition = '[]' WHERE id = :rule",
}


@pytest.mark.parametrize("damage", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_skipped_and_told_of_and_stops_no_other(stage: Stage, damage: str) -> None:
    broken = stale(stage)
    stage.put("c2", status="pending")
    whole = wait(stage, stage.rule(key="other"), "c2")
    given = {":row": broken, ":rule": stage.pending(broken).automation_id}
    (name,) = [name for name in given if name in damage]
    stage.change(damage, **{name[1:]: given[name]})
    with capture_logs() as logs:
        stage.after(4 * HOUR).sweep()
    (stood,) = stage.rows("SELECT status, skip_reason FROM pending_executions WHERE id = :id", id=broken)
    assert (tuple(stood), stage.stands(whole)) == (("skipped", "unreadable"), ("executed", None))
    assert [line["pending_id"] for line in logs if line["event"] == "delayed_unreadable"] == [broken]
    assert stage.count(delayed_key(stage.backends.keys, "skipped:unreadable")) == 1


def test_what_spoils_its_settling_is_told_of_each_time_and_ends_as_expired(stage: Stage) -> None:
    """Here what is known of its subject cannot be read; nothing says that this will be so for ever."""
    broken = stale(stage)
    stage.put("c2", status="pending")
    whole = wait(stage, stage.rule(key="other"), "c2")
    stage.change("UPDATE subjects SET writes = '{\"touches\": 1, \"fields\": 1}' WHERE id = 'c1'")
    with capture_logs() as logs:
        stage.after(4 * HOUR).sweep()
        stage.after(STUCK_AFTER + MOMENT).sweep()
        assert (stage.stands(broken), stage.stands(whole)) == (("processing", None), ("executed", None))
        stage.after(EXPIRY).sweep()
    assert stage.stands(broken) == ("skipped", "expired")
    told = [line["pending_id"] for line in logs if line["event"] == "delayed_not_settled"]
    assert told == [broken, broken]


def test_while_redis_is_away_rows_fire_and_their_runs_wait_for_the_watchdog(stage: Stage) -> None:
    found = stale(stage)
    away = open_redis("unix:///nowhere/redis.sock")
    deaf = replace(stage.backends, redis=away, queue=HandleQueue(away, stage.backends.keys))
    stage.after(4 * HOUR)
    DelayedSweep(deaf, EXPIRY).pass_once()
    assert stage.stands(found) == ("executed", None)
    assert [run.status for run in stage.runs()] == ["PENDING"]


def test_what_fired_and_what_was_skipped_is_counted_and_how_late(stage: Stage, redis_client: Redis) -> None:
    automation_id = stage.rule()
    for name in ("c1", "c2", "c3"):
        stage.put(name, status="pending")
        wait(stage, automation_id, name)
    stage.put("c3", status="open")
    stage.after(4 * HOUR + timedelta(seconds=4))
    sweep = DelayedSweep(stage.backends, EXPIRY)
    sweep.pass_once()
    keys = stage.backends.keys
    assert stage.count(delayed_key(keys, "executed")) == 2
    assert stage.count(delayed_key(keys, "skipped:conditions_changed")) == 1
    with stage.backends.redis.pipeline(transaction=False) as pipe:
        sweep.lateness.add_to(pipe)
        pipe.execute()
    assert redis_client.hget(observed_key(keys, Measure.SWEEP_LATENESS), "5") == b"2"
