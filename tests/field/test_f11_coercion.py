"""A text "10" that is smaller than "2".

Elsewhere two numbers that came as text were ordered by the alphabet, so a guard on a balance let a payment
through. Here the leaf says how both sides are read, numbers are exact, and it never matters which side is the
text. What a person is shown before saving, and what the pipeline decides, is one answer.
"""

from typing import Any

import pytest

from shared.dead_stream import list_dead
from shared.errors import DefinitionError
from shared.rules.conditions import check_conditions, compile_conditions, explain_conditions
from tests.field.road import NOTICE, Road

TABLE: list[tuple[Any, str, Any, str | None, bool]] = [
    ("10", "gt", "2", "number", True),
    ("10", "gt", "2", "text", False),
    ("10", "gt", "2", None, False),
    ("10", "gt", 2, None, True),
    (10, "gt", "2", None, True),
    ("2", "gt", 10, None, False),
    (2, "gt", "10", None, False),
    ("250000.00", "gte", 100_000, None, True),
    (100_000, "lte", "250000.00", None, True),
    (9_007_199_254_740_993, "gt", 9_007_199_254_740_992, None, True),
    ("9007199254740993", "gt", 9_007_199_254_740_992, None, True),
    (True, "eq", "true", None, False),
    (True, "eq", True, "boolean", True),
    (True, "eq", 1, None, False),
    ("", "lt", 5, None, False),
    ("abc", "gt", 5, None, False),
    (5, "gt", "abc", None, False),
    ("2026-01-01", "lt", "2026-02-01", "date", True),
    ("NaN", "gt", 5, None, False),
    ("Infinity", "gt", 5, "number", False),
]


def leaf(row: int) -> dict[str, Any]:
    """Make the condition of one row of the table over the event that holds them all."""
    _, op, value, kind, _ = TABLE[row]
    reading = {} if kind is None else {"as": kind}
    return {"all": [{"field": f"left{row}", "op": op, "value": value, **reading}]}


def test_every_row_has_one_answer_in_the_pipeline_and_in_the_tester(road: Road) -> None:
    event = {f"left{row}": found for row, (found, *_) in enumerate(TABLE)}
    ids = [road.automation(NOTICE, on="sum.told", conditions=leaf(row)) for row in range(len(TABLE))]
    road.publish("sum.told", event)
    road.rest()
    ran = [road.run(automation_id).skip_reason is None for automation_id in ids]
    assert ran == [outcome for *_, outcome in TABLE]
    assert ran == [compile_conditions(leaf(row))(event) for row in range(len(TABLE))]
    assert ran == [explain_conditions(leaf(row), event)[0].passed for row in range(len(TABLE))]
    assert {run.status for run in road.runs()} == {"SUCCEEDED"}
    reasons = {TABLE[row][0]: road.why(road.run(ids[row]).id) for row in range(len(TABLE)) if not ran[row]}
    assert reasons["abc"] == ["left15 must be a number"]


@pytest.mark.parametrize(("value", "kind"), [("true", "boolean"), ("abc", "number"), ("soon", "date")])
def test_a_value_that_its_reading_cannot_take_is_refused_when_saved(value: str, kind: str) -> None:
    tree = {"all": [{"field": "left", "op": "eq", "value": value, "as": kind}]}
    assert check_conditions(tree)
    with pytest.raises(DefinitionError):
        compile_conditions(tree)


def test_an_event_with_a_number_that_is_none_is_refused(road: Road) -> None:
    road.automation(NOTICE, on="sum.told", conditions=leaf(0))
    numbers = ("NaN", "Infinity", "-Infinity", "1e999")
    for number in numbers:
        road.publish_raw({"type": "sum.told", "workspaceId": "w1", "payload": f'{{"left0": {number}}}'})
    road.rest()
    assert road.runs() == []
    dead = list_dead(road.room.parts.redis, road.room.parts.keys, 10)
    assert [each.error for each in dead] == ["BadEvent"] * len(numbers)
    assert road.post.pending() == 0
