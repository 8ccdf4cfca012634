"""What becomes of what waits while people edit their automations, and of automations that never wait."""

from typing import Any

import pytest

from shared.services.automations import Edit, accept_any, activate, delete, edit, pause
from tests.delayed.day import HOUR, MINUTE, Day, hour, status_is
from tests.field.road import W1
from tests.listening import capture_logs

STALE = {"type": "ADD_LABEL", "config": {"labels": ["stale-pending"]}}
SEEN = {"type": "ADD_LABEL", "config": {"labels": ["seen"]}}
KEY = "stale"


def change(day: Day, keys: dict[str, Any]) -> None:
    """Give keys of the automation other values."""
    edit(day.road.post.backends, W1, KEY, Edit(keys, accept_any, accept_any))


@pytest.fixture
def stuck(day: Day) -> Day:
    """Label what has been pending for four hours; c1 is since Monday at ten."""
    day.rule("CONVERSATION_UPDATED", 240, STALE, conditions=status_is("pending"), key=KEY)
    day.at("10:00").conversation(status="pending")
    return day


def test_story_4_an_automation_without_a_delay_fires_at_once(day: Day) -> None:
    day.rule("CONVERSATION_UPDATED", None, SEEN, conditions=status_is("pending"))
    day.at("10:00").conversation(status="pending")
    assert (day.labels(), day.road.ends(), day.rows()) == (["seen"], ["SUCCEEDED", "self_trigger"], [])


def test_story_4_an_old_automation_is_edited_and_its_delay_is_not_touched(day: Day) -> None:
    day.rule("CONVERSATION_UPDATED", None, SEEN, conditions=status_is("pending"), key=KEY)
    change(day, {"name": "Another name"})
    day.at("10:00").conversation(status="pending")
    assert (day.labels(), day.road.ends(), day.rows()) == (["seen"], ["SUCCEEDED", "self_trigger"], [])


def test_story_5_admin_disables_the_rule_while_executions_are_pending(stuck: Day) -> None:
    stuck.conversation(id_="c2", status="pending")
    pause(stuck.road.post.backends, W1, KEY)
    assert stuck.stands() == [("pending", None)] * 2
    stuck.at("14:00").sweep()
    assert stuck.stands() == [("skipped", "rule_inactive")] * 2
    assert (stuck.labels(), stuck.road.runs()) == ([], [])


def test_story_5_a_rule_that_is_enabled_again_in_time_fires(stuck: Day) -> None:
    pause(stuck.road.post.backends, W1, KEY)
    stuck.at("12:00").sweep()
    activate(stuck.road.post.backends, W1, KEY)
    stuck.at("14:00").sweep()
    assert (stuck.labels(), stuck.stands()) == (["stale-pending"], [("executed", None)])


def test_story_5_admin_disables_the_rule_after_the_sweep_and_before_the_action(stuck: Day) -> None:
    stuck.at("14:00").road.sweep()
    pause(stuck.road.post.backends, W1, KEY)
    stuck.road.rest()
    assert (stuck.labels(), stuck.stands()) == ([], [("skipped", "rule_inactive")])
    assert stuck.road.ends() == ["inactive"]


def test_story_5_admin_deletes_the_rule(stuck: Day) -> None:
    stuck.conversation(id_="c2", status="pending")
    delete(stuck.road.post.backends, W1, KEY)
    assert stuck.rows() == []
    stuck.at("14:00").sweep()
    assert (stuck.labels(), stuck.road.runs()) == ([], [])


def test_story_5_admin_edits_the_delay_from_4h_to_8h(stuck: Day) -> None:
    stuck.at("11:00")
    change(stuck, {"execution_delay": 480})
    stuck.conversation(status="pending", touched=1)
    stuck.conversation(id_="c2", status="pending")
    assert [row.due_at for row in stuck.rows()] == [hour("14:00"), hour("19:00")]
    stuck.at("14:00").sweep()
    assert (stuck.labels(), stuck.labels("c2")) == (["stale-pending"], [])
    stuck.at("19:00").sweep()
    assert stuck.labels("c2") == ["stale-pending"]


def test_story_5_admin_edits_the_conditions_and_they_hold_no_longer(stuck: Day) -> None:
    stuck.at("11:00")
    both = {"all": [status_is("pending"), {"field": "conversation.inbox", "op": "eq", "value": "support"}]}
    change(stuck, {"conditions": both})
    stuck.at("14:00").sweep()
    assert (stuck.labels(), stuck.stands()) == ([], [("skipped", "conditions_changed")])


def test_story_5_admin_edits_the_conditions_and_they_have_held_all_along(stuck: Day) -> None:
    stuck.at("11:00")
    wider = {"any": [status_is("pending"), status_is("open")]}
    change(stuck, {"conditions": wider})
    stuck.at("12:00").conversation(status="open")
    stuck.at("14:00").sweep()
    assert (stuck.labels(), stuck.stands()) == (["stale-pending"], [("executed", None)])


def test_story_5_conversation_deleted_before_due(stuck: Day) -> None:
    stuck.at("11:00").tell("conversation.deleted", {"conversation": {"id": "c1"}})
    assert stuck.stands() == [("skipped", "subject_gone")]
    stuck.at("14:00").sweep()
    assert stuck.road.runs() == []


def test_story_5_conversation_deleted_between_the_sweep_and_the_action(stuck: Day) -> None:
    stuck.at("14:00").publish("conversation.deleted", {"conversation": {"id": "c1"}})
    with capture_logs() as lines:
        stuck.road.sweep()
        stuck.road.rest()
    assert stuck.stands() == [("skipped", "subject_gone")]
    assert stuck.road.ends() == ["subject_gone"]
    assert [line for line in lines if line["log_level"] in ("error", "critical")] == []


LABELLED = {"field": "conversation.labels", "op": "contains", "value": "vip"}
URGENT = {"field": "conversation.priority", "op": "in", "value": ["high", "urgent"]}


def test_a_label_that_goes_and_comes_back_in_the_middle_starts_a_new_clock(day: Day) -> None:
    day.rule("CONVERSATION_UPDATED", 240, STALE, conditions=LABELLED)
    day.at("10:00").conversation(labels=["vip"])
    day.at("12:00").conversation(labels=[])
    day.conversation(labels=["new", "vip"])
    day.at("14:00").sweep()
    assert day.road.runs() == []
    assert [row.due_at for row in day.rows()] == [hour("14:00"), hour("16:00")]
    day.at("16:00").sweep()
    assert day.stands() == [("skipped", "conditions_changed"), ("executed", None)]


def test_a_field_that_changes_among_values_that_all_fit_keeps_its_clock(day: Day) -> None:
    day.rule("CONVERSATION_UPDATED", 240, STALE, conditions=URGENT)
    day.at("10:00").conversation(priority="high")
    day.at("12:00").conversation(priority="urgent")
    day.at("13:00").conversation(priority="high")
    day.at("14:00").sweep()
    assert (day.labels(), day.stands()) == (["stale-pending"], [("executed", None)])


def test_after_72_hours_in_which_nobody_swept_it_is_too_late(stuck: Day) -> None:
    stuck.at("13:00", 1).conversation(id_="c2", status="pending")
    stuck.at("14:00", 3).after(MINUTE).sweep()
    assert (stuck.labels(), stuck.labels("c2")) == ([], ["stale-pending"])
    assert stuck.stands() == [("skipped", "expired"), ("executed", None)]


def test_one_that_expired_is_spent_until_it_begins_anew(stuck: Day) -> None:
    stuck.at("15:00", 3).sweep()
    stuck.conversation(status="pending", touched=1)
    stuck.after(5 * HOUR).sweep()
    assert stuck.stands() == [("skipped", "expired")]
    stuck.conversation(status="open")
    stuck.conversation(status="pending")
    stuck.after(4 * HOUR).sweep()
    assert (stuck.labels(), stuck.stands()[-1]) == (["stale-pending"], ("executed", None))
