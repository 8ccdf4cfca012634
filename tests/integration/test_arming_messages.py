"""What waits for an answer, the agent's or the customer's (docs/delayed.md, "Anchors")."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.model.events import Context
from shared.services.backends import Backends
from tests.arming import HOUR, IS_INCOMING, IS_OUTGOING, Desk, Told, conversation, hour, message, open_desk

NOON = hour("12:00")
MINUTE = timedelta(minutes=1)
DAY_MIN = 24 * 60
IS_SHOWN_NOTE = {"field": "message.private", "op": "eq", "value": True}


@pytest.fixture
def desk(backends: Backends) -> Desk:
    return open_desk(backends)


def micros(at: datetime) -> int:
    return round(at.timestamp() * 1_000_000)


def test_story_2_a_reply_on_monday_at_three_is_chased_on_tuesday(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", DAY_MIN, conditions=IS_OUTGOING)
    desk.tell(message(hour("14:00"), "m1"), message(hour("15:00"), "m2", "outgoing"))
    row = desk.row()
    assert (row.episode.anchor, row.episode.key, row.episode.message_id) == (
        "reply_chase",
        "reply_chase:m1",
        "m2",
    )
    assert (row.episode.started_at, row.due_at) == (hour("15:00"), hour("15:00", 1))


def test_story_2_two_more_replies_move_the_clock_to_the_latest(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", DAY_MIN, conditions=IS_OUTGOING)
    desk.tell(message(hour("15:00"), "m1", "outgoing"))
    desk.tell(message(hour("15:05"), "m2", "outgoing"))
    last = message(hour("15:10"), "m3", "outgoing")
    desk.tell(last)
    row = desk.row()
    assert (row.episode.key, row.episode.message_id, row.version) == ("reply_chase:0", "m3", 3)
    assert (row.due_at, row.trigger_event["entryId"]) == (hour("15:10", 1), last.entry_id)
    assert (desk.delayed("armed"), desk.delayed("moved")) == (1, 2)


def test_story_2_the_customers_reply_ends_the_chase(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", DAY_MIN, conditions=IS_OUTGOING)
    desk.tell(message(hour("15:00"), "m1", "outgoing"), message(hour("18:00"), "m2"))
    assert desk.stands() == [("skipped", "episode_moved")]
    desk.tell(message(hour("19:00"), "m3", "outgoing"))
    (row,) = desk.open()
    assert (row.episode.key, row.due_at) == ("reply_chase:m2", hour("19:00", 1))


def test_story_2_the_follow_up_itself_arms_and_moves_nothing(desk: Desk) -> None:
    rule = desk.rule("MESSAGE_CREATED", DAY_MIN, conditions=IS_OUTGOING)
    desk.tell(message(hour("15:00"), "m1", "outgoing"))
    before = desk.rows()
    context = Context(rule.id, "r1", "r1", 1)
    desk.tell(message(hour("15:00", 1), "m2", "outgoing", senderType="automation", context=context))
    desk.tell(message(hour("16:00", 1), "m3", "outgoing", senderType="automation"))
    assert desk.rows() == before


def test_an_executed_chase_does_not_begin_again_before_the_customer_writes(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", DAY_MIN, conditions=IS_OUTGOING)
    desk.tell(message(NOON, "m1", "outgoing"))
    desk.set(desk.row(), status="executed")
    desk.tell(message(NOON + HOUR, "m2", "outgoing"))
    assert desk.stands() == [("executed", None)]
    desk.tell(message(NOON + 2 * HOUR, "m3"))
    assert desk.open() == []
    desk.tell(message(NOON + 3 * HOUR, "m4", "outgoing"))
    assert desk.stands() == [("executed", None), ("pending", None)]


def test_a_late_older_reply_never_moves_the_clock_back(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", DAY_MIN, conditions=IS_OUTGOING)
    desk.tell(message(NOON + HOUR, "m2", "outgoing"))
    before = desk.rows()
    desk.tell(message(NOON, "m1", "outgoing"))
    assert desk.rows() == before


def test_a_claimed_chase_is_not_moved_but_can_be_ended(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", DAY_MIN, conditions=IS_OUTGOING)
    desk.tell(message(NOON, "m1", "outgoing"))
    desk.set(desk.row(), status="processing", version=2)
    desk.tell(message(NOON + HOUR, "m2", "outgoing"))
    assert desk.row().episode.message_id == "m1"
    desk.tell(message(NOON + 2 * HOUR, "m3"))
    assert desk.stands() == [("skipped", "episode_moved")]


def test_a_customer_who_waits_is_waited_for_since_the_first_message(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", 60, conditions=IS_INCOMING)
    desk.tell(message(NOON, "m1"))
    row = desk.row()
    assert (row.episode.anchor, row.episode.key) == ("awaiting_agent", f"awaiting_agent:{micros(NOON)}")
    again = message(NOON + MINUTE, "m2")
    desk.tell(again)
    row = desk.row()
    assert (row.episode.started_at, row.due_at) == (NOON, NOON + HOUR)
    assert (row.episode.message_id, row.trigger_event["entryId"]) == ("m2", again.entry_id)


def test_the_delay_is_edited_for_new_episodes_only(desk: Desk) -> None:
    rule = desk.rule("MESSAGE_CREATED", 60, conditions=IS_INCOMING)
    desk.tell(message(NOON, "m1"))
    definition = {**rule.definition, "execution_delay": 120}
    desk.post.change(replace(rule, definition=definition, version=2, updated_at=datetime.now(UTC)))
    desk.tell(message(NOON + MINUTE, "m2"))
    assert desk.row().due_at == NOON + HOUR
    desk.tell(message(NOON + 2 * MINUTE, "m3", "outgoing"), message(NOON + 3 * MINUTE, "m4"))
    (row,) = desk.open()
    assert row.due_at == NOON + 3 * MINUTE + 2 * HOUR


@pytest.mark.parametrize(
    "answer",
    [
        message(NOON + MINUTE, "m2", "outgoing"),
        message(NOON + MINUTE, "m2", "outgoing", senderType="bot"),
        conversation(NOON + MINUTE, "resolved", status="resolved"),
    ],
    ids=["agent", "bot", "resolve"],
)
def test_an_answer_ends_the_waiting(desk: Desk, answer: Told) -> None:
    desk.rule("MESSAGE_CREATED", 60, conditions=IS_INCOMING)
    desk.tell(message(NOON, "m1"), answer)
    assert desk.stands() == [("skipped", "episode_moved")]
    desk.tell(message(NOON + HOUR, "m3"))
    (row,) = desk.open()
    assert row.episode.started_at == NOON + HOUR


@pytest.mark.parametrize(
    "said",
    [
        message(NOON + MINUTE, "m2", "outgoing", private=True),
        message(NOON + MINUTE, "m2", "outgoing", senderType="automation"),
        message(NOON + MINUTE, "m2", "outgoing", autoSubmitted="auto-replied"),
        message(NOON + MINUTE, "m2", autoSubmitted="auto-replied"),
        conversation(NOON + MINUTE, status="snoozed"),
    ],
    ids=["note", "automation", "auto_reply", "machine", "snooze"],
)
def test_what_is_no_answer_ends_nothing_and_moves_nothing(desk: Desk, said: Told) -> None:
    desk.rule("MESSAGE_CREATED", 60)
    desk.tell(message(NOON, "m1"))
    before = desk.rows()
    desk.tell(said)
    assert desk.rows() == before


def test_a_note_is_for_those_who_ask_for_it(desk: Desk) -> None:
    asks = desk.rule("MESSAGE_CREATED", 60, conditions=IS_SHOWN_NOTE)
    desk.rule("MESSAGE_CREATED", 60)
    desk.tell(message(NOON, "m1", "outgoing", private=True))
    assert desk.row().automation_id == asks.id


def test_a_late_answer_moves_what_waits_for_a_message_after_it(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", 60, conditions=IS_INCOMING)
    second = message(NOON + 2 * MINUTE, "m3")
    desk.tell(message(NOON, "m1"), second)
    desk.tell(message(NOON + MINUTE, "m2", "outgoing"))
    assert desk.stands() == [("skipped", "episode_moved"), ("pending", None)]
    (row,) = desk.open()
    assert (row.episode.started_at, row.episode.message_id) == (NOON + 2 * MINUTE, "m3")
    assert row.trigger_event["entryId"] == second.entry_id


def test_a_late_first_message_moves_the_clock_of_what_waits(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", 60, conditions=IS_INCOMING)
    desk.tell(message(NOON + MINUTE, "m2"))
    desk.tell(message(NOON, "m1"))
    (row,) = desk.open()
    assert (row.due_at, row.episode.message_id) == (NOON + HOUR, "m2")


def test_a_late_first_message_of_a_spent_episode_lets_it_be_spent(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", 60, conditions=IS_INCOMING)
    desk.tell(message(NOON + MINUTE, "m2"))
    desk.set(desk.row(), status="executed")
    desk.tell(message(NOON, "m1"))
    row = desk.row()
    assert (row.status, row.ended_at, row.episode.key) == (
        "executed",
        None,
        f"awaiting_agent:{micros(NOON)}",
    )


def test_a_late_customers_message_gives_a_spent_chase_its_name(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", 60, conditions=IS_OUTGOING)
    desk.tell(message(NOON, "m2", "outgoing"))
    desk.set(desk.row(), status="executed")
    desk.tell(message(NOON - MINUTE, "m1"))
    assert (desk.row().episode.key, desk.row().status) == ("reply_chase:m1", "executed")
    desk.tell(message(NOON + MINUTE, "m3", "outgoing"))
    assert desk.row().status == "executed"


def test_one_that_answers_arms_nobody_who_waits_for_the_customer_in_the_same_talk(desk: Desk) -> None:
    both = desk.rule("MESSAGE_CREATED", 60)
    desk.tell(message(NOON, "m1"))
    desk.tell(message(NOON + MINUTE, "m2", "outgoing"))
    (row,) = desk.open()
    assert (row.automation_id, row.episode.anchor) == (both.id, "reply_chase")
    desk.tell(message(NOON + 2 * MINUTE, "m3"))
    (row,) = desk.open()
    assert row.episode.anchor == "awaiting_agent"
    assert desk.stands() == [("skipped", "episode_moved")] * 2 + [("pending", None)]


def test_a_message_told_again_under_its_id_moves_nothing(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", 60, conditions=IS_OUTGOING)
    desk.tell(message(NOON, "m1", "outgoing"))
    before = desk.rows()
    desk.tell(message(NOON + HOUR, "m1", "outgoing"))
    assert desk.rows() == before


def test_an_event_pattern_that_takes_in_messages_hangs_on_them(desk: Desk) -> None:
    desk.rule("EVENT", 60, config={"eventType": "message.*"}, conditions=IS_INCOMING)
    desk.tell(message(NOON, "m1"))
    assert desk.row().episode.anchor == "awaiting_agent"


def test_a_message_event_without_a_message_waits_for_a_state(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", 60)
    desk.tell(Told(NOON, "message.created", {"conversation": {"id": "c1", "status": "open"}}))
    assert desk.row().episode.anchor == "state"


def test_what_was_said_before_anything_was_resolved_waits_for_nobody(desk: Desk) -> None:
    desk.rule("MESSAGE_CREATED", 60, conditions=IS_INCOMING)
    desk.tell(conversation(NOON, "resolved", status="resolved"))
    desk.tell(message(NOON - MINUTE, "m1"))
    assert desk.open() == []
    assert desk.stands() == [("skipped", "episode_moved")]


@pytest.mark.parametrize("direction", ["incoming", "outgoing"])
def test_a_message_that_says_it_is_from_the_future_waits_since_it_came(desk: Desk, direction: str) -> None:
    desk.rule("MESSAGE_CREATED", 60)
    desk.tell(message(NOON, "m1", direction, createdAt="2199-01-01T00:00:00Z"))
    row = desk.row()
    assert (row.episode.started_at, row.due_at) == (NOON, NOON + HOUR)


@pytest.mark.parametrize("direction", ["incoming", "outgoing"])
def test_a_message_that_says_it_is_ages_old_has_been_due_and_waits_since_it_was_read(
    desk: Desk, direction: str
) -> None:
    desk.rule("MESSAGE_CREATED", 60)
    desk.tell(message(NOON, "m1", direction, createdAt="1970-01-01T00:00:00Z"))
    row = desk.row()
    assert row.due_at < row.armed_at == row.created_at
