"""What waits for a state: armed, left alone, closed, moved (docs/delayed.md, "Anchors")."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.model.events import Context
from shared.model.statuses import AutomationStatus
from shared.services.backends import Backends
from shared.time.clock import epoch_ms
from tests.arming import HOUR, IS_OPEN, IS_PENDING, MONDAY, Desk, Told, conversation, hour, message, open_desk

TEN = hour("10:00")
MINUTE = timedelta(minutes=1)


@pytest.fixture
def desk(backends: Backends) -> Desk:
    return open_desk(backends)


def test_story_1_a_conversation_that_moves_to_pending_at_ten_is_due_at_two(desk: Desk) -> None:
    rule = desk.rule(conditions=IS_PENDING)
    told = conversation(TEN, status="pending")
    desk.tell(told)
    row = desk.row()
    assert (row.automation_id, row.subject_type, row.subject_id) == (rule.id, "conversation", "c1")
    assert (row.episode.key, row.episode.started_at) == (f"state:{told.entry_id}", TEN)
    assert (row.due_at, row.status, row.version, row.run_id) == (hour("14:00"), "pending", 1, None)
    assert row.trigger_event["entryId"] == told.entry_id
    assert desk.post.runs() == []
    assert desk.delayed("armed") == 1


def test_story_1_a_note_and_a_touch_do_not_reset_the_clock(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending"))
    before = desk.rows()
    desk.tell(message(hour("11:30"), "m1", "outgoing", private=True))
    desk.tell(conversation(hour("11:31"), status="pending"), conversation(hour("11:32"), assignee="a"))
    assert desk.rows() == before


def test_story_1_a_conversation_that_is_resolved_at_one_waits_no_longer(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending"))
    desk.tell(conversation(hour("13:00"), "resolved", status="resolved"))
    row = desk.row()
    assert (row.status, row.skip_reason, row.version) == ("skipped", "conditions_changed", 2)
    assert row.ended_at == desk.backends.clock.now()
    assert (desk.delayed("closed"), desk.delayed("skipped:conditions_changed")) == (1, 1)


def test_story_1_pending_again_next_day_is_a_new_episode(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending"))
    desk.tell(conversation(hour("13:00"), "resolved", status="resolved"))
    desk.tell(conversation(hour("09:00", 1), status="pending"))
    assert desk.stands() == [("skipped", "conditions_changed"), ("pending", None)]
    (row,) = desk.open()
    assert row.due_at == hour("13:00", 1)


def test_story_3_a_conversation_created_on_wednesday_is_due_on_friday(desk: Desk) -> None:
    desk.rule("CONVERSATION_CREATED", 48 * 60, conditions=IS_OPEN)
    desk.tell(conversation(hour("09:00", 2), "created", status="open"))
    assert desk.row().due_at == hour("09:00", 4)


def test_story_3_resolved_on_thursday_and_reopened_on_friday_is_not_armed_again(desk: Desk) -> None:
    desk.rule("CONVERSATION_CREATED", 48 * 60, conditions=IS_OPEN)
    desk.tell(conversation(hour("09:00", 2), "created", status="open"))
    desk.tell(conversation(hour("09:00", 3), "resolved", status="resolved"))
    desk.tell(conversation(hour("08:00", 4), "opened", status="open"))
    assert desk.stands() == [("skipped", "conditions_changed")]


def test_story_3_it_is_so_too_if_the_reopening_comes_to_be_known_first(desk: Desk) -> None:
    desk.rule("CONVERSATION_CREATED", 48 * 60, conditions=IS_OPEN)
    desk.tell(conversation(hour("09:00", 2), "created", status="open"))
    desk.tell(conversation(hour("08:00", 4), "opened", status="open"))
    desk.tell(conversation(hour("09:00", 3), "resolved", status="resolved"))
    assert desk.stands() == [("skipped", "episode_moved")]


def test_a_flip_of_a_millisecond_begins_a_new_episode(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending"))
    millisecond = timedelta(milliseconds=1)
    desk.tell(
        conversation(TEN + MINUTE, status="open"), conversation(TEN + MINUTE + millisecond, status="pending")
    )
    (row,) = desk.open()
    assert row.episode.started_at == TEN + MINUTE + millisecond
    assert len(desk.rows()) == 2


def test_one_that_changes_among_values_that_fit_keeps_its_clock(desk: Desk) -> None:
    waits = {"field": "conversation.status", "op": "in", "value": ["pending", "snoozed"]}
    desk.rule(conditions={"all": [waits, {"field": "conversation.labels", "op": "contains", "value": "vip"}]})
    desk.tell(conversation(TEN, status="pending", labels=["vip"]))
    desk.tell(conversation(TEN + HOUR, status="snoozed"), conversation(TEN + 2 * HOUR, labels=["vip", "b"]))
    assert desk.row().episode.started_at == TEN
    desk.tell(conversation(TEN + 3 * HOUR, labels=["b"]), conversation(TEN + 4 * HOUR, labels=["vip"]))
    (row,) = desk.open()
    assert row.episode.started_at == TEN + 4 * HOUR


def test_it_is_due_no_sooner_than_the_automation_is_active(desk: Desk) -> None:
    active = hour("20:00")
    desk.rule(conditions=IS_PENDING, activated_ms=epoch_ms(active))
    desk.tell(conversation(TEN, "opened", status="pending"))
    assert desk.rows() == []
    desk.tell(conversation(active + MINUTE, assignee="a"))
    row = desk.row()
    assert (row.episode.started_at, row.due_at) == (TEN, active)


def test_what_is_created_arms_what_listens_to_updates(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.rule("EVENT", config={"eventType": "conversation.updated"}, conditions=IS_PENDING)
    desk.rule("CONVERSATION_OPENED", conditions=IS_PENDING)
    desk.tell(conversation(TEN, "created", status="pending"))
    assert len(desk.rows()) == 2
    assert desk.post.skipped("filter_mismatch") == 0


def test_an_event_that_is_not_named_arms_nothing(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, "opened", status="pending"))
    assert desk.rows() == []
    desk.tell(conversation(TEN + HOUR, assignee="a"))
    assert desk.row().episode.started_at == TEN


def test_what_an_event_changed_counts_when_it_arms_and_never_after(desk: Desk) -> None:
    moved = {"field": "conversation.status", "op": "changed_to", "value": "pending"}
    desk.rule(conditions={"all": [moved, IS_PENDING]})
    desk.tell(conversation(TEN, status="pending"))
    assert desk.rows() == []
    fields = {"changedProperties": ["status"], "conversation": {"id": "c1", "status": "pending"}}
    desk.tell(Told(TEN + HOUR, "conversation.updated", fields))
    assert desk.row().episode.started_at == TEN
    desk.tell(conversation(TEN + 2 * HOUR, assignee="a"))
    assert desk.row().status == "pending"


def ours(automation_id: str, depth: int = 1) -> Context:
    return Context(automation_id, "r1", "r1", depth)


def test_an_automations_own_event_closes_but_does_not_arm(desk: Desk) -> None:
    rule = desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending", context=ours(rule.id)))
    assert desk.rows() == []
    assert desk.post.skipped("self_trigger") == 1
    desk.tell(conversation(TEN + HOUR, assignee="a"))
    assert desk.row().episode.started_at == TEN
    desk.tell(conversation(TEN + 2 * HOUR, status="open", context=ours(rule.id)))
    assert desk.stands() == [("skipped", "conditions_changed")]


def test_too_deep_an_event_does_not_arm(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending", context=ours("other", 5)))
    assert desk.rows() == []
    assert desk.post.skipped("depth_limit") == 1
    desk.tell(conversation(TEN + HOUR, assignee="a", context=ours("other", 4)))
    assert len(desk.rows()) == 1


def test_an_event_about_no_subject_arms_nothing_and_is_counted(desk: Desk) -> None:
    desk.rule("EVENT", config={"eventType": "order.placed"})
    desk.tell(Told(TEN, "order.placed", {"orderId": 7}))
    assert desk.rows() == []
    assert desk.post.skipped("no_subject") == 1
    desk.tell(Told(TEN + HOUR, "order.placed", {"subject": {"type": "order", "id": 7}}))
    assert desk.row().subject_id == "7"


def test_paused_ones_and_those_active_only_later_never_arm(desk: Desk) -> None:
    paused = desk.rule(conditions=IS_PENDING)
    desk.post.change(replace(paused, status=AutomationStatus.PAUSED))
    desk.rule(conditions=IS_PENDING, activated_ms=epoch_ms(TEN) + 1)
    desk.tell(conversation(TEN, status="pending"))
    assert desk.rows() == []
    assert desk.post.skipped("inactive") == 2
    assert desk.post.skipped("filter_mismatch") == 0


def test_what_waits_for_a_paused_one_still_learns_that_it_is_over(desk: Desk) -> None:
    rule = desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending"))
    desk.post.change(replace(rule, status=AutomationStatus.PAUSED))
    desk.tell(conversation(TEN + HOUR, assignee="a"))
    assert desk.stands() == [("pending", None)]
    desk.tell(conversation(TEN + 2 * HOUR, status="open"))
    assert desk.stands() == [("skipped", "conditions_changed")]


@pytest.mark.parametrize(
    ("status", "reason"), [("executed", None), ("skipped", "expired"), ("skipped", "cancelled")]
)
def test_a_spent_episode_stays_spent_until_it_is_over(desk: Desk, status: str, reason: str | None) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending"))
    desk.set(desk.row(), status=status, skip_reason=reason)
    desk.tell(conversation(TEN + HOUR, status="pending"), conversation(TEN + 2 * HOUR, assignee="a"))
    assert (desk.stands(), len(desk.open())) == ([(status, reason)], 1)
    desk.tell(conversation(TEN + 3 * HOUR, status="open"))
    assert (desk.stands(), len(desk.open())) == ([(status, reason)], 0)
    desk.tell(conversation(TEN + 4 * HOUR, status="pending"))
    assert desk.stands() == [(status, reason), ("pending", None)]
    assert desk.delayed("skipped:conditions_changed") == 0


def test_a_spent_episode_that_began_earlier_is_told_so_and_stays_spent(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending"))
    desk.set(desk.row(), status="executed")
    late = conversation(TEN - HOUR, "opened", status="pending")
    desk.tell(late)
    row = desk.row()
    assert (row.status, row.ended_at) == ("executed", None)
    assert (row.episode.key, row.episode.started_at) == (f"state:{late.entry_id}", TEN - HOUR)


def test_a_spent_episode_takes_the_place_of_one_that_had_its_beginning(desk: Desk) -> None:
    """An event that was published before it was published again can make one stretch of two."""
    desk.rule(conditions=IS_PENDING)
    first = conversation(TEN, status="pending")
    opened = replace(conversation(TEN + HOUR, status="open"), id="e1")
    desk.tell(first, opened, conversation(TEN + 2 * HOUR, status="pending"))
    (row,) = desk.open()
    desk.set(row, status="executed")
    desk.tell(replace(opened, at=TEN - HOUR))
    (row,) = desk.open()
    assert row.episode.key == f"state:{first.entry_id}"
    assert (row.status, row.skip_reason) == ("skipped", "conditions_changed")
    desk.tell(conversation(TEN + 3 * HOUR, assignee="a"))
    assert desk.stands() == [("executed", None), ("skipped", "conditions_changed")]


@pytest.mark.parametrize("reason", ["rule_inactive", "episode_moved", "conditions_changed"])
def test_an_episode_that_was_ended_without_a_run_waits_again(desk: Desk, reason: str) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending"))
    row = desk.row()
    ended = {"ended_at": MONDAY.isoformat(), "run_id": "r1"}
    desk.set(row, status="skipped", skip_reason=reason, version=3, **ended)
    told = conversation(TEN + HOUR, assignee="a")
    desk.tell(told)
    again = desk.row()
    assert (again.id, again.status, again.skip_reason, again.ended_at) == (row.id, "pending", None, None)
    assert (again.version, again.due_at, again.run_id) == (4, hour("14:00"), None)
    assert again.trigger_event["entryId"] == told.entry_id


def test_a_claimed_row_is_closed_too(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending"))
    desk.set(desk.row(), status="processing", version=2, claimed_at=MONDAY.isoformat())
    desk.tell(conversation(TEN + HOUR, status="open"))
    row = desk.row()
    assert (row.status, row.version, row.claimed_at) == ("skipped", 3, None)


def test_a_subject_that_is_deleted_is_waited_for_no_longer(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.rule("MESSAGE_CREATED", conditions=IS_PENDING)
    desk.tell(conversation(TEN, status="pending"), message(TEN + MINUTE, "m1"))
    assert desk.stands() == [("pending", None)] * 2
    desk.tell(conversation(TEN + HOUR, "deleted"))
    assert desk.stands() == [("skipped", "subject_gone")] * 2
    desk.tell(conversation(TEN + 2 * HOUR, "created", status="pending"))
    (row,) = desk.open()
    assert row.episode.started_at == TEN + 2 * HOUR


def test_without_a_field_the_newest_event_that_names_it_counts(desk: Desk) -> None:
    desk.rule("EVENT", 60, config={"eventType": "order.placed"})
    subject: dict[str, Any] = {"subject": {"type": "order", "id": "o1", "state": {"n": 1}}}
    desk.tell(Told(TEN, "order.placed", subject))
    assert desk.row().due_at == TEN + HOUR
    desk.tell(Told(TEN + MINUTE, "order.packed", subject))
    assert desk.row().due_at == TEN + HOUR
    desk.tell(Told(TEN - MINUTE, "order.placed", subject))
    assert desk.row().due_at == TEN + HOUR
    desk.tell(Told(TEN + 2 * MINUTE, "order.placed", subject))
    assert desk.stands() == [("skipped", "episode_moved"), ("pending", None)]
    (row,) = desk.open()
    assert row.due_at == TEN + 2 * MINUTE + HOUR


def test_an_event_published_twice_does_not_reset_a_clock(desk: Desk) -> None:
    desk.rule("EVENT", 60, config={"eventType": "order.placed"})
    payload = {"subject": {"type": "order", "id": "o1"}}
    desk.tell(Told(TEN, "order.placed", payload, id="e1"))
    desk.tell(Told(TEN + MINUTE, "order.placed", payload, id="e1"))
    assert desk.row().due_at == TEN + HOUR


def test_conditions_on_what_the_event_alone_tells_are_asked_of_the_event_that_armed(desk: Desk) -> None:
    from_web = {"field": "source", "op": "eq", "value": "web"}
    desk.rule(conditions={"all": [IS_PENDING, from_web]})
    payload = {"conversation": {"id": "c1", "status": "pending"}, "source": "web"}
    desk.tell(Told(TEN, "conversation.updated", payload))
    desk.tell(conversation(TEN + HOUR, assignee="a"))
    assert desk.stands() == [("pending", None)]
    desk.tell(conversation(TEN + 2 * HOUR, status="open"), conversation(TEN + 3 * HOUR, status="pending"))
    assert desk.stands() == [("skipped", "conditions_changed")]


def test_a_late_event_moves_what_waits_and_keeps_its_event(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    first, again = conversation(TEN, status="pending"), conversation(TEN + 2 * HOUR, status="pending")
    desk.tell(first, again)
    assert desk.row().episode.started_at == TEN
    desk.tell(conversation(TEN + HOUR, "resolved", status="resolved"))
    assert desk.stands() == [("skipped", "episode_moved"), ("pending", None)]
    (row,) = desk.open()
    assert (row.episode.started_at, row.due_at) == (TEN + 2 * HOUR, TEN + 6 * HOUR)
    assert row.trigger_event["entryId"] == first.entry_id
    assert (desk.delayed("armed"), desk.delayed("skipped:episode_moved")) == (2, 1)


def test_a_late_event_can_show_that_what_was_named_long_ago_has_begun(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(TEN + HOUR, assignee="a"))
    assert desk.rows() == []
    desk.tell(conversation(TEN, "opened", status="pending"))
    assert desk.row().episode.started_at == TEN


def test_other_workspaces_and_other_subjects_are_left_alone(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING, workspace_id="w2")
    desk.tell(conversation(TEN, status="pending"))
    assert desk.rows() == []


def test_records_are_armed_by_their_properties_and_in_their_database(desk: Desk) -> None:
    unpaid = {"field": "properties.status", "op": "eq", "value": "unpaid"}
    desk.rule("RECORD_UPDATED", config={"databaseId": "d1"}, conditions=unpaid)
    for record, database in (("r1", "d1"), ("r2", "d2")):
        payload = {"recordId": record, "databaseId": database, "properties": {"status": "unpaid"}}
        desk.tell(Told(TEN, "record.updated", payload, id=record))
    assert desk.row().subject_id == "r1"
    desk.tell(Told(TEN + HOUR, "record.updated", {"recordId": "r1", "properties": {"status": "paid"}}))
    assert desk.stands() == [("skipped", "conditions_changed")]


def test_what_begins_anew_by_a_late_event_does_not_wait_with_the_event_that_ended_the_old(desk: Desk) -> None:
    desk.rule(conditions=IS_PENDING)
    desk.tell(conversation(hour("10:00"), status="pending", note="first"))
    desk.tell(conversation(hour("12:00"), status="pending", note="last"))
    desk.tell(conversation(hour("11:00"), status="open", note="left"))
    old, new = desk.rows()
    assert (old.status, old.skip_reason) == ("skipped", "episode_moved")
    assert new.episode.started_at == hour("12:00")
    assert new.trigger_event["payload"]["conversation"]["status"] == "pending"
