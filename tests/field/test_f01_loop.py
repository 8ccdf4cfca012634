"""A record-updated automation that updates its own record.

Somebody sets a quantity; the automation writes the total next to it. That write is itself an update of the
record, so the automation meets its own event. Elsewhere that went round without end, and one edit filled the
list of runs. Here the second run sees whose work the event is and does nothing.
"""

from tests.field.conftest import Open
from tests.field.road import ON_UPDATE, Road

TOTAL = {"type": "UPDATE_RECORD", "config": {"properties": {"total": "{{ properties.qty }}"}}}
IN_D1 = {**ON_UPDATE, "config": {"databaseId": "d1"}}


def test_an_automation_that_updates_its_own_record_runs_once(road: Road) -> None:
    a1 = road.automation(TOTAL, on=IN_D1)
    road.update({"qty": 4}, "qty")
    road.rest()
    first, second = road.runs()
    assert road.ends() == ["SUCCEEDED", "self_trigger"]
    assert road.data("r1") == {"qty": 4, "total": 4}
    done = road.room.all("SELECT run_id FROM run_actions")
    assert [row.run_id for row in done] == [first.id]
    assert (first.depth, second.depth, second.root_run_id) == (0, 1, first.id)
    _, own = road.told("record.updated")
    assert own.context is not None
    assert (own.context.automation_id, own.context.run_id, own.depth) == (a1, first.id, 1)
    (executed,) = road.told("automation.executed")
    assert executed.payload["runId"] == first.id


def test_its_own_event_is_no_matter_of_depth(open_here: Open) -> None:
    road = open_here(automation_max_depth=1)
    road.automation(TOTAL, on=IN_D1)
    road.update({"qty": 4}, "qty")
    road.rest()
    assert road.ends() == ["SUCCEEDED", "self_trigger"]


def test_two_automations_that_wake_each_other_end_at_the_depth(open_here: Open) -> None:
    road = open_here(automation_max_depth=3)
    count = {"n": "{{ properties.n | plus: 1 }}"}
    for _ in range(2):
        road.automation({"type": "UPDATE_RECORD", "config": {"properties": count}}, on=IN_D1)
    road.update({"n": 1}, "n")
    road.rest()
    assert set(road.ends()) == {"SUCCEEDED", "self_trigger", "depth_limit"}
    assert max(row.depth for row in road.runs()) == 3
