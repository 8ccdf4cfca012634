"""An automation, or the record it waits for, is deleted while executions of it wait.

Elsewhere the wake-up found nothing any more, and so did the handler of its error. Here the rows go with the
automation, those of a record that is gone say so, and at the due time nothing is there to be woken.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from shared.services.automations import delete
from tests.delayed.day import MONDAY, Day
from tests.field.conftest import Open
from tests.field.road import W1
from tests.listening import capture_logs

KEY = "remind"
RECORDS = ("r1", "r2", "r3")
TOUCH = {"type": "UPDATE_RECORD", "config": {"properties": {"reminded": True}}}
UNPAID = {"field": "properties.paid", "op": "eq", "value": False}


def tell_record(day: Day, verb: str, record_id: str, **properties: Any) -> None:
    told = {"recordId": record_id, "databaseId": "d1"}
    more = {"properties": properties, "changedProperties": list(properties)} if properties else {}
    day.tell(f"record.{verb}", {**told, **more})


@pytest.fixture
def day(open_here: Open) -> Day:
    """Have three records wait until noon of the next day."""
    opened = Day(open_here(begins=MONDAY))
    actions = [opened.road.hook("/one"), TOUCH, opened.road.hook("/two")]
    opened.rule("RECORD_UPDATED", 1_440, *actions, conditions=UNPAID, key=KEY)
    opened.at("12:00")
    for record_id in RECORDS:
        tell_record(opened, "updated", record_id, paid=False)
    assert opened.stands() == [("pending", None)] * 3
    return opened


def sweep_around_noon(day: Day) -> Sequence[Any]:
    """Sweep at the due time and for a while after it; give the lines of the log that ask for a person."""
    with capture_logs() as lines:
        for clock in ("12:00", "12:05", "12:10"):
            day.at(clock, 1).sweep()
    return [line for line in lines if line["log_level"] in ("error", "critical") or "exc_info" in line]


def test_what_waits_for_a_deleted_automation_is_gone(day: Day) -> None:
    delete(day.road.post.backends, W1, KEY)
    assert day.rows() == []
    assert sweep_around_noon(day) == []
    assert (day.road.runs(), day.road.receiver.deliveries()) == ([], [])


def test_an_event_that_was_on_its_way_arms_nothing_for_it(day: Day) -> None:
    delete(day.road.post.backends, W1, KEY)
    tell_record(day, "updated", "r4", paid=False)
    assert (day.rows(), sweep_around_noon(day)) == ([], [])


def test_what_was_woken_before_the_delete_is_cancelled(day: Day) -> None:
    day.at("12:00", 1).road.sweep()
    delete(day.road.post.backends, W1, KEY)
    assert day.rows() == []
    with capture_logs() as lines:
        day.road.rest()
    assert day.road.ends() == ["CANCELLED"] * 3
    assert (sweep_around_noon(day), day.road.receiver.deliveries()) == ([], [])
    assert [line for line in lines if line["log_level"] in ("error", "critical")] == []


def test_what_waits_for_a_deleted_record_ends_skipped_and_the_others_fire(day: Day) -> None:
    day.at("15:00")
    tell_record(day, "deleted", "r2")
    assert sorted(day.stands()) == [("pending", None), ("pending", None), ("skipped", "subject_gone")]
    assert sweep_around_noon(day) == []
    assert sorted(day.stands()) == [("executed", None), ("executed", None), ("skipped", "subject_gone")]
    assert {run.subject_id for run in day.road.runs()} == {"r1", "r3"}
    assert len(day.road.receiver.deliveries("/two")) == 2


def test_a_record_that_is_deleted_after_the_sweep_is_not_acted_on(day: Day) -> None:
    day.at("12:00", 1).road.sweep()
    day.publish("record.deleted", {"recordId": "r2", "databaseId": "d1"})
    assert sweep_around_noon(day) == []
    assert sorted(day.road.ends()) == ["SUCCEEDED", "SUCCEEDED", "subject_gone"]
    assert len(day.road.receiver.deliveries("/one")) == 2
