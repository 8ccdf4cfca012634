"""The stories of docs/delayed.md, moment by moment, over the whole road: stream, matcher, sweep, engine."""

import pytest

from shared.model.pending import Anchor
from tests.delayed.day import DAY, HOUR, INCOMING, MINUTE, OUTGOING, Day, hour, sent, status_is

STALE = {"type": "ADD_LABEL", "config": {"labels": ["stale-pending"]}}
RISK = {"type": "ADD_LABEL", "config": {"labels": ["sla-risk"]}}
CHASE = "Just checking in: did that solve it for you?"
FOLLOW_UP = {"type": "SEND_MESSAGE", "config": {"content": CHASE}}
ASK_AGAIN = {"type": "SEND_MESSAGE", "config": {"content": "We are still on it."}}


@pytest.fixture
def stuck(day: Day) -> Day:
    """Label what has been pending for four hours; c1 moves to pending on Monday at ten."""
    day.rule("CONVERSATION_UPDATED", 240, STALE, conditions=status_is("pending"))
    day.at("9:00").conversation("created", status="open")
    day.at("10:00").conversation(status="pending")
    return day


def test_story_1_conversation_moves_to_pending_at_ten(stuck: Day) -> None:
    row = stuck.row()
    assert (row.status.value, row.due_at) == ("pending", hour("14:00"))
    assert (row.episode.anchor, row.episode.started_at) == (Anchor.STATE, hour("10:00"))
    stuck.at("13:59").sweep()
    assert (stuck.stands(), stuck.road.runs(), stuck.labels()) == ([("pending", None)], [], [])


def test_story_1_private_note_at_half_past_eleven(stuck: Day) -> None:
    before = stuck.row()
    stuck.at("11:30").message("outgoing", private=True)
    stuck.conversation(status="pending", lastNoteAt="11:30")
    assert stuck.row() == before


def test_story_1_still_pending_at_the_sweep(stuck: Day) -> None:
    stuck.at("14:00").sweep()
    assert stuck.labels() == ["stale-pending"]
    assert stuck.road.ends() == ["SUCCEEDED"]
    row = stuck.row()
    assert (row.status.value, row.run_id, row.ended_at) == ("executed", stuck.road.run().id, None)


def test_story_1_still_pending_at_a_late_sweep(stuck: Day) -> None:
    stuck.at("14:05").sweep()
    stuck.at("14:10").sweep()
    assert (stuck.labels(), len(stuck.road.runs())) == (["stale-pending"], 1)


def test_story_1_resolved_at_one(stuck: Day) -> None:
    stuck.at("13:00").conversation("resolved", status="resolved")
    assert stuck.stands() == [("skipped", "conditions_changed")]
    assert stuck.row().ended_at == hour("13:00")
    stuck.at("14:00").sweep()
    assert (stuck.labels(), stuck.road.runs()) == ([], [])


def test_story_1_resolved_a_moment_before_the_sweep_that_has_not_heard_of_it(stuck: Day) -> None:
    """The event is on the stream, the row is claimed: the run is made, and finds out when it is to act."""
    stuck.at("14:00")
    stuck.publish("conversation.resolved", {"conversation": {"id": "c1", "status": "resolved"}})
    stuck.road.sweep()
    assert stuck.stands() == [("executed", None)]
    stuck.road.rest()
    assert stuck.stands() == [("skipped", "conditions_changed")]
    assert (stuck.labels(), stuck.road.ends()) == ([], ["conditions_changed"])


def test_story_1_reopened_and_pending_again_next_day(stuck: Day) -> None:
    stuck.at("13:00").conversation("resolved", status="resolved")
    stuck.at("9:00", 1).conversation("opened", status="open")
    stuck.at("10:30", 1).conversation(status="pending")
    first, second = stuck.rows()
    assert (second.due_at, second.episode.key != first.episode.key) == (hour("14:30", 1), True)
    stuck.at("14:29", 1).sweep()
    assert stuck.labels() == []
    stuck.at("14:30", 1).sweep()
    assert stuck.labels() == ["stale-pending"]
    assert stuck.stands() == [("skipped", "conditions_changed"), ("executed", None)]


def test_story_1_pending_again_after_the_label_is_a_second_run(stuck: Day) -> None:
    stuck.at("14:00").sweep()
    stuck.at("15:00").conversation(status="open", labels=[])
    stuck.at("16:00").conversation(status="pending")
    stuck.at("20:00").sweep()
    assert (stuck.labels(), len(stuck.road.runs())) == (["stale-pending"], 2)
    assert stuck.stands() == [("executed", None)] * 2


@pytest.fixture
def quiet(day: Day) -> Day:
    """Follow up what nobody has answered for 24 hours; an agent replies on Monday at three."""
    day.rule("MESSAGE_CREATED", 1_440, FOLLOW_UP, conditions=OUTGOING)
    day.at("14:00").message("incoming")
    day.at("15:00").message("outgoing")
    return day


def test_story_2_agent_replies_on_monday_at_three(quiet: Day) -> None:
    row = quiet.row()
    assert (row.status.value, row.due_at) == ("pending", hour("15:00", 1))
    assert (row.episode.anchor, row.episode.key) == (Anchor.REPLY_CHASE, "reply_chase:m1")
    quiet.at("14:59", 1).sweep()
    assert (quiet.stands(), sent(quiet)) == ([("pending", None)], [])


def test_story_2_agent_sends_two_more_replies_at_ten_past(quiet: Day) -> None:
    quiet.at("15:09").message("outgoing")
    quiet.at("15:10").message("outgoing")
    row = quiet.row()
    assert (row.due_at, row.episode.message_id) == (hour("15:10", 1), "m4")
    quiet.at("15:09", 1).sweep()
    assert sent(quiet) == []
    quiet.at("15:10", 1).sweep()
    assert sent(quiet) == [CHASE]


def test_story_2_customer_replies_on_monday_at_six(quiet: Day) -> None:
    quiet.at("18:00").message("incoming")
    assert quiet.stands() == [("skipped", "episode_moved")]
    quiet.at("15:00", 1).sweep()
    assert (sent(quiet), quiet.road.runs()) == ([], [])


def test_story_2_customer_never_replies(quiet: Day) -> None:
    for minute in range(0, 60, 5):
        quiet.at(f"15:{minute:02}", 1).sweep()
    assert (sent(quiet), quiet.stands()) == ([CHASE], [("executed", None)])
    assert len(quiet.road.told("message.created")) == 3


def test_story_2_the_follow_up_itself_does_not_re_arm(quiet: Day) -> None:
    quiet.at("15:00", 1).sweep()
    before = quiet.row()
    for days in range(2, 6):
        quiet.at("15:05", days).sweep()
    assert (sent(quiet), quiet.row()) == ([CHASE], before)


def test_story_2_once_per_waiting_episode(quiet: Day) -> None:
    quiet.at("15:00", 1).sweep()
    quiet.at("16:00", 1).message("outgoing")
    quiet.at("17:00", 2).sweep()
    assert sent(quiet) == [CHASE]
    quiet.at("18:00", 2).message("incoming")
    quiet.at("19:00", 2).message("outgoing")
    quiet.at("19:00", 3).sweep()
    assert sent(quiet) == [CHASE] * 2
    assert [row.episode.key for row in quiet.rows()] == ["reply_chase:m1", "reply_chase:m4"]


def test_story_2_turned_round_a_customer_waits_for_the_agent(day: Day) -> None:
    day.rule("MESSAGE_CREATED", 120, ASK_AGAIN, conditions=INCOMING)
    day.at("10:00").message("incoming")
    day.at("11:00").message("incoming")
    row = day.row()
    assert (row.episode.anchor, row.due_at) == (Anchor.AWAITING_AGENT, hour("12:00"))
    day.at("12:00").sweep()
    assert sent(day) == ["We are still on it."]
    day.at("12:30").message("outgoing")
    assert day.row().ended_at == hour("12:30")
    day.at("13:00").message("incoming")
    day.at("14:30").message("outgoing")
    day.at("15:00").sweep()
    assert sent(day) == ["We are still on it."]


@pytest.fixture
def long_open(day: Day) -> Day:
    """Label what is open for 48 hours; c1 is created on Wednesday at nine."""
    day.rule("CONVERSATION_CREATED", 2_880, RISK, conditions=status_is("open"))
    day.at("9:00", 2).conversation("created", status="open")
    return day


def test_story_3_created_on_wednesday_still_open_on_friday(long_open: Day) -> None:
    assert long_open.row().due_at == hour("9:00", 4)
    long_open.at("8:59", 4).sweep()
    assert long_open.labels() == []
    long_open.at("9:00", 4).sweep()
    assert long_open.labels() == ["sla-risk"]


def test_story_3_resolved_on_thursday(long_open: Day) -> None:
    long_open.at("12:00", 3).conversation("resolved", status="resolved")
    long_open.at("9:00", 4).sweep()
    assert (long_open.labels(), long_open.stands()) == ([], [("skipped", "conditions_changed")])


def test_story_3_resolved_on_thursday_reopened_on_friday_at_eight(long_open: Day) -> None:
    long_open.at("12:00", 3).conversation("resolved", status="resolved")
    long_open.at("8:00", 4).conversation("opened", status="open")
    for days in (4, 5, 6, 7):
        long_open.at("9:00", days).sweep()
    assert (long_open.labels(), long_open.stands()) == ([], [("skipped", "conditions_changed")])


def test_story_3_a_second_rule_covers_what_is_reopened(long_open: Day) -> None:
    long_open.rule("CONVERSATION_OPENED", 2_880, RISK, conditions=status_is("open"))
    long_open.at("12:00", 3).conversation("resolved", status="resolved")
    long_open.at("8:00", 4).conversation("opened", status="open")
    long_open.after(2 * DAY - MINUTE).sweep()
    assert long_open.labels() == []
    long_open.after(MINUTE).sweep()
    assert long_open.labels() == ["sla-risk"]


def test_an_order_unpaid_for_a_day_is_told_of_once(day: Day) -> None:
    notice = {"type": "CREATE_NOTIFICATION", "config": {"title": "Order {{ subject.id }} is unpaid"}}
    unpaid = {"field": "order.paid", "op": "eq", "value": False}
    day.road.automation(notice, on="order.*", conditions=unpaid, execution_delay=1_440)
    for number, clock in enumerate(("10:00", "11:00"), start=1):
        subject = {"type": "order", "id": f"o{number}"}
        day.at(clock).tell("order.placed", {"subject": {**subject, "state": {"paid": False, "total": 9}}})
        day.tell("order.updated", {"subject": {**subject, "state": {"total": 12}}})
    assert [row.due_at for row in day.rows()] == [hour("10:00", 1), hour("11:00", 1)]
    day.at("20:00").tell("order.paid", {"subject": {"type": "order", "id": "o2", "state": {"paid": True}}})
    day.at("10:00", 1).sweep()
    day.after(3 * HOUR).sweep()
    assert day.road.notices() == ["Order o1 is unpaid"]
    assert day.stands() == [("executed", None), ("skipped", "conditions_changed")]
