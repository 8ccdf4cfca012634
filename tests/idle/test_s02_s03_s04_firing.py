"""Idle steps that fire: what they say and change, what follows, what stops them (docs/idle-sequences.md)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from redis import Redis

from shared.db.dead_groups import list_dead_groups
from shared.db.log_reads import run_log
from shared.db.messages import find_messages, insert_messages
from shared.db.run_lists import RunQuery, list_runs
from shared.model.idle_steps import IdleResult
from shared.model.messages import SenderType
from shared.model.runs import RunSource
from shared.services.runs import Insistence, ReplayFrom, cancel, replay
from tests.arming import conversation, message
from tests.bulk import begin, do_all, wish
from tests.idle.road import THREE, Road, after, open_road, tree
from tests.idle_stage import GLOBAL, rule_of
from tests.listening import capture_logs
from tests.people import CALLER

ASSIGNED = {"type": "division", "division": {"id": "d7", "name": "Sales"}}
LEGACY = {"action": "follow_up", "follow_up": {"duration": 60, "message": "Hello?"}}
OFF = "UPDATE feature_flags SET enabled = 0"


@pytest.fixture
def road(database_url: str, redis_url: str) -> Iterator[Road]:
    with open_road(database_url, redis_url) as opened:
        yield opened


def give(road: Road, *steps: Any, **rule: Any) -> None:
    rule_of(road.idle, {"steps": list(steps)} if steps else rule)


def reply(road: Road, minutes: float, id_: str = "r1") -> None:
    road.idle.tell(message(after(minutes), id_))


def test_s02_ac_1_step_0_fires_after_its_own_duration_and_arms_step_1(road: Road) -> None:
    road.begin()
    road.at(9.9)
    assert road.said() == []
    road.at(10)
    assert [content for content, _ in road.said()] == ["Still there? {{ 1 | plus: 1 }}"]
    assert road.steps() == [(0, "fired", None), (1, "pending", None)]
    fired, waits = road.idle.rows()
    assert waits.due_at == after(20)
    assert (waits.sequence_id, waits.anchor.message_id != fired.anchor.message_id) == (fired.id, True)


def test_s02_ac_2_three_steps_fire_in_order_and_say_which_they_are(road: Road) -> None:
    road.begin()
    for minutes in (10, 20, 30, 40):
        road.at(minutes)
    marks = [mark for _, mark in road.said()]
    assert [(each["step_index"], each["step_count"], each["is_last_step"]) for each in marks] == [
        (0, 3, False),
        (1, 3, False),
        (2, 3, True),
    ]
    assert [each["action"] for each in marks] == ["follow_up", "follow_up", "resolve"]
    assert {(each["rule"], each["sequence_id"]) for each in marks} == {("agent", road.idle.rows()[0].id)}
    assert [run.title for run in road.runs()] == [
        f"Idle sequence of agent Agent nora, step {step}" for step in (1, 2, 3)
    ]
    assert {run.automation_id for run in road.runs()} == {None}
    road.counts(IdleResult.FIRED, 3)
    road.counts(IdleResult.RESOLVED, 1)


def test_s02_ac_3_resolve_is_terminal(road: Road) -> None:
    give(road, THREE[2], THREE[0])
    road.begin()
    road.at(10)
    assert road.conversation()["status"] == "resolved"
    assert road.conversation()["closedReason"] == "RESOLVE_AI_IDLE"
    assert road.steps() == [(0, "fired", None)]
    (told,) = road.told("message.created")
    assert told["message"]["content"] == "Bye."
    assert len(road.told("conversation.resolved")) == 1


def test_s02_ac_4_assign_arms_the_next_and_a_last_follow_up_leaves_the_conversation_open(road: Road) -> None:
    give(road, {"action": "assign", "duration": 600, "assign": ASSIGNED}, THREE[0])
    road.idle.tell(conversation(after(-1), "created", status="open"))
    road.begin()
    road.at(10)
    assert road.conversation()["teamId"] == "d7"
    assert road.told("message.created") == []
    assert [(content, mark["step_index"]) for content, mark in road.said()] == [("", 0)]
    road.at(20)
    assert road.steps() == [(0, "fired", None), (1, "fired", None)]
    assert road.conversation()["status"] == "open"


def test_an_automatic_assignment_is_asked_for_and_changes_no_field(road: Road) -> None:
    give(road, {"action": "assign", "duration": 600, "message": "One moment.", "assign": {"type": "auto"}})
    road.begin()
    before = road.conversation()
    road.at(10)
    (asked,) = road.told("conversation.assignment_requested")
    assert (asked["conversation"]["id"], asked["assignment"]) == ("c1", {"type": "auto"})
    assert road.conversation() == before
    assert [content for content, _ in road.said()] == ["One moment."]


def test_s02_err_1_a_failed_step_comes_again_after_60_s_and_the_pointer_stays(road: Road) -> None:
    road.failing("SEND_MESSAGE", 1)
    road.begin()
    with capture_logs() as lines:
        road.at(10)
    (run,) = road.runs()
    assert (run.status, run.retry_count, road.steps()) == ("PENDING", 1, [(0, "processing", None)])
    (line,) = [each for each in lines if each["event"] == "idle_step_failed"]
    shown = (line["conversation_id"], line["agent_id"], line["step_index"], line["attempt"], line["code"])
    assert shown == ("c1", "nora", 0, 1, "AWAY")
    road.at(10.9)
    assert road.said() == []
    road.at(11)
    assert [mark["step_index"] for _, mark in road.said()] == [0]
    assert road.steps() == [(0, "fired", None), (1, "pending", None)]


def test_s02_err_2_a_failing_resolve_is_tried_three_times_then_halts(road: Road) -> None:
    give(road, THREE[2])
    stub = road.failing("RESOLVE", 3)
    road.begin()
    for minutes in (10, 11, 12, 13, 14):
        road.at(minutes)
    (run,) = road.runs()
    assert (stub.calls, run.status, road.steps()) == (3, "DEAD_LETTER", [(0, "failed", None)])
    assert road.said() == []
    road.counts(IdleResult.FAILED, 1)
    (alert,) = road.rows("SELECT title, automation_id FROM alerts")
    assert alert.title == "Idle sequence of agent Agent nora, step 1 dead-lettered"
    assert alert.automation_id is None


def test_a_replayed_dead_letter_goes_on(road: Road) -> None:
    road.failing("SEND_MESSAGE", 3)
    road.begin()
    for minutes in (10, 11, 12):
        road.at(minutes)
    assert road.steps() == [(0, "failed", None)]
    (run,) = road.runs()
    replay(road.idle.backends, CALLER, [run.id], ReplayFrom.FAILED_ACTION)
    road.at(13)
    assert road.steps() == [(0, "fired", None), (1, "pending", None)]


def test_a_replayed_dead_letter_says_nothing_after_a_reply(road: Road) -> None:
    road.failing("SEND_MESSAGE", 3)
    road.begin()
    for minutes in (10, 11, 12):
        road.at(minutes)
    reply(road, 12.5)
    (run,) = road.runs()
    replay(road.idle.backends, CALLER, [run.id], ReplayFrom.FAILED_ACTION)
    road.at(13)
    assert (road.said(), road.steps()) == ([], [(0, "stopped", "customer_replied")])


def test_s02_neg_1_the_channels_rule_is_never_called_in_steps_mode(road: Road) -> None:
    road.idle.tell(conversation(after(-1), "created", status="open", inboxId="shop"))
    give(road, THREE[0])
    road.begin()
    road.at(10)
    assert road.steps() == [(0, "fired", None)]


def test_s02_neg_2_a_fourth_stored_step_never_fires_and_each_firing_warns_once(road: Road) -> None:
    give(road, *[THREE[0]] * 4)
    with capture_logs() as lines:
        road.begin()
        for minutes in (10, 20, 30, 40):
            road.at(minutes)
    warned = [
        (each["step_index"], each["ignored"]) for each in lines if each["event"] == "idle_steps_ignored"
    ]
    assert warned == [(0, 1), (1, 1), (2, 1)]
    assert len(road.said()) == 3
    assert road.steps() == [(index, "fired", None) for index in range(3)]


def test_s03_neg_1_a_reply_after_all_steps_have_fired_brings_nothing(road: Road) -> None:
    give(road, *THREE[:2])
    road.idle.tell(conversation(after(-1), "created", status="open"))
    road.begin()
    for minutes in (10, 20):
        road.at(minutes)
    rows, said = road.idle.rows(), road.said()
    assert road.steps() == [(0, "fired", None), (1, "fired", None)]
    reply(road, 25)
    for minutes in (30, 40):
        road.at(minutes)
    assert (road.idle.rows(), road.said(), len(road.runs())) == (rows, said, 2)
    assert road.idle.counted(IdleResult.RESET) == 0
    assert road.conversation()["status"] == "open"


def test_s03_err_1_a_reply_after_the_sweep_and_before_the_act_stops_it(road: Road) -> None:
    road.begin()
    road.idle.sweep_at(after(10))
    reply(road, 10)
    road.drive()
    (run,) = road.runs()
    assert (run.status, run.skip_reason, road.said()) == ("SUCCEEDED", "customer_replied", [])
    assert road.steps() == [(0, "stopped", "customer_replied")]
    road.counts(IdleResult.RESET, 1)


def test_s03_err_1_a_reply_between_the_gate_and_the_commit_stops_the_act(road: Road) -> None:
    """The reply is stored while the executor works: under the lock of the act's transaction it is seen."""
    stub = road.failing("SEND_MESSAGE", 0)
    stub.before = lambda: reply(road, 10)
    road.begin()
    road.at(10)
    (run,) = road.runs()
    assert (stub.calls, run.status, run.skip_reason) == (1, "SUCCEEDED", "customer_replied")
    assert (road.said(), road.steps()) == ([], [(0, "stopped", "customer_replied")])
    assert road.told("message.created") == []


def test_s03_err_2_what_is_closed_meanwhile_is_closed_once(road: Road) -> None:
    give(road, THREE[2])
    closed = conversation(after(10), "resolved", status="resolved")
    road.failing("RESOLVE", 0).before = lambda: road.idle.tell(closed)
    road.begin()
    road.at(10)
    assert road.runs()[0].skip_reason == "conversation_closed"
    assert "closedReason" not in road.conversation()
    assert (road.said(), road.told("conversation.resolved")) == ([], [])
    assert road.steps() == [(0, "stopped", "conversation_closed")]


@pytest.mark.parametrize("flag", ["on", "off"])
def test_s04_ac_1_a_legacy_follow_up_fires_and_leaves_the_conversation_open(road: Road, flag: str) -> None:
    if flag == "off":
        road.idle.change(OFF)
    give(road, **LEGACY)
    road.idle.tell(conversation(after(-1), "created", status="open"))
    road.begin()
    for minutes in (1, 2):
        road.at(minutes)
    assert (road.conversation()["status"], road.steps()) == ("open", [(0, "fired", None)])
    assert [(content, mark["action"]) for content, mark in road.said()] == [("Hello?", "follow_up")]


@pytest.mark.parametrize("flag", ["on", "off"])
def test_s04_ac_1_a_legacy_assign_fires_and_gives_the_conversation_away(road: Road, flag: str) -> None:
    if flag == "off":
        road.idle.change(OFF)
    give(road, action="assign", assign={"duration": 60, **ASSIGNED})
    road.idle.tell(conversation(after(-1), "created", status="open"))
    road.begin()
    for minutes in (1, 2):
        road.at(minutes)
    assert (road.conversation()["status"], road.conversation()["teamId"]) == ("open", "d7")
    assert road.steps() == [(0, "fired", None)]
    assert road.told("message.created") == []


@pytest.mark.parametrize("flag", ["on", "off"])
def test_s04_ac_1_a_legacy_action_fires_as_before_and_resolve_is_kept(road: Road, flag: str) -> None:
    if flag == "off":
        road.idle.change(OFF)
    give(road, action="resolve", resolve={"duration": 60, "message": "Bye."})
    road.begin()
    road.at(1)
    assert (road.conversation()["status"], road.conversation()["closedReason"]) == ("resolved", "RESOLVE")
    assert (road.said()[0][0], road.steps()) == ("Bye.", [(0, "fired", None)])


def test_s04_ac_2_a_legacy_follow_up_arms_the_rule_of_the_channel(road: Road) -> None:
    road.idle.tell(conversation(after(-1), "created", status="open", inboxId="shop"))
    give(road, **LEGACY)
    road.begin()
    road.at(1)
    first, second = road.idle.rows()
    assert (second.rule, second.channel_id, second.agent_id, second.status) == (
        "channel",
        "shop",
        None,
        "pending",
    )
    assert second.due_at == after(6)
    assert second.sequence_id == second.id != first.id
    road.at(6)
    assert road.conversation()["closedReason"] == "RESOLVE"
    assert [content for content, _ in road.said()] == ["Hello?", GLOBAL["message"]]
    assert road.runs()[-1].title == "Idle rule of channel The shop"
    assert len(road.idle.rows()) == 2


def test_s04_ac_3_with_the_flag_off_the_legacy_keys_decide(road: Road) -> None:
    road.idle.change(OFF)
    give(road, steps=list(THREE), **LEGACY)
    road.begin()
    road.at(1)
    assert [content for content, _ in road.said()] == ["Hello?"]
    assert road.said()[0][1]["step_count"] == 1


def test_s04_err_1_a_failing_legacy_action_is_not_retried_and_is_logged(road: Road) -> None:
    give(road, **LEGACY)
    stub = road.failing("SEND_MESSAGE", 5)
    road.begin()
    with capture_logs() as lines:
        road.at(1)
        road.at(5)
    (run,) = road.runs()
    assert (stub.calls, run.status, road.steps()) == (1, "FAILED", [(0, "failed", None)])
    assert [each["event"] for each in lines].count("idle_step_failed") == 1
    assert road.rows("SELECT id FROM alerts") == []


def test_the_flag_off_between_two_steps_stops_the_second(road: Road) -> None:
    road.begin()
    road.at(10)
    road.idle.sweep_at(after(20))
    road.idle.change(OFF)
    road.drive()
    assert road.steps() == [(0, "fired", None), (1, "stopped", "config_changed")]
    assert len(road.said()) == 1


def test_f02_a_machines_answer_is_no_reply(road: Road) -> None:
    road.begin()
    road.idle.tell(message(after(5), "ooo", autoSubmitted="auto-replied"))
    road.at(10)
    assert [mark["step_index"] for _, mark in road.said()] == [0]


def test_f18_after_a_reply_nothing_more_is_said(road: Road) -> None:
    road.begin()
    road.at(10)
    reply(road, 15)
    for minutes in (20, 30, 40):
        road.at(minutes)
    assert len(road.said()) == 1
    assert road.steps() == [(0, "fired", None), (1, "stopped", "customer_replied")]


def test_redis_flushed_in_the_middle_loses_nothing(road: Road) -> None:
    road.begin()
    road.at(10)
    with Redis.from_url(str(road.settings.redis_url)) as client:
        client.flushdb()
    for minutes in (20, 30):
        road.at(minutes)
    assert [mark["step_index"] for _, mark in road.said()] == [0, 1, 2]


def test_a_person_who_cancels_the_run_stops_the_step(road: Road) -> None:
    road.begin()
    road.idle.sweep_at(after(10))
    (run,) = road.runs()
    cancel(road.idle.backends, CALLER, run.id, Insistence.GENTLE)
    road.drive()
    assert (road.runs()[0].status, road.steps()) == ("CANCELLED", [(0, "stopped", "cancelled")])
    assert road.said() == []


def test_the_end_of_such_a_run_is_told_by_its_name(road: Road) -> None:
    road.begin()
    road.at(10)
    (told,) = road.told("automation.executed")
    assert (told["automationId"], told["name"]) == (None, "Idle sequence of agent Agent nora, step 1")
    (row,) = road.rows("SELECT fields FROM outbox WHERE run_id = :id", id=road.runs()[0].id)[-1:]
    assert tree(tree(row.fields)["context"])["depth"] == 1


def test_a_bulk_cancel_stops_the_steps_of_such_runs(road: Road) -> None:
    road.begin()
    road.idle.sweep_at(after(10))
    begin(road.idle.backends, wish("cancel"))
    do_all(road.idle.backends)
    assert road.steps() == [(0, "stopped", "cancelled")]


def test_lists_and_logs_show_such_a_run_by_its_name(road: Road) -> None:
    road.failing("SEND_MESSAGE", 3)
    road.begin()
    for minutes in (10, 11, 12):
        road.at(minutes)
    name = "Idle sequence of agent Agent nora, step 1"
    with road.idle.backends.database.read() as conn:
        (row,) = list_runs(conn, RunQuery("w1", 10, source=RunSource.IDLE_STEP))
        assert list_runs(conn, RunQuery("w1", 10, source=RunSource.EVENT)) == []
        (group,) = list_dead_groups(conn, "w1", most=10)
        lines = run_log(conn, "w1", row.id, most=50)
        (alert,) = road.rows("SELECT fingerprint, target FROM alerts")
    assert (row.automation_id, row.automation_key, row.known_by) == (None, None, name)
    assert (group.trouble.target, group.automation_ids) == (name, ())
    assert (group.fingerprint, group.trouble.target) == (alert.fingerprint, alert.target)
    assert {(line.automation_id, line.automation_key) for line in lines} == {(None, name)}


def test_what_a_step_has_said_already_is_not_said_again_and_the_next_one_waits(road: Road) -> None:
    road.begin()
    road.idle.sweep_at(after(10))
    (row,) = road.idle.rows()
    mark = {"idle_rule": {"step_index": 0, "sequence_id": row.sequence_id}}
    with road.idle.backends.database.begin() as conn:
        (told,) = find_messages(conn, [("w1", "m1")]).values()
        stamp = (told.stamp[0] + 1, 0)
        given = replace(told, id="s0", sender_type=SenderType.AUTOMATION, agent_id=None, stamp=stamp)
        insert_messages(conn, [replace(given, auto_submitted=True, parameters=mark)])
    road.drive()
    assert len(road.said()) == 1
    assert road.told("message.created") == []
    assert road.steps() == [(0, "fired", None), (1, "pending", None)]
    assert road.idle.rows()[1].anchor.message_id == "s0"
