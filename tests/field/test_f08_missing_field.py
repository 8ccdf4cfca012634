"""An AND that passes on one true leg, and a missing field that passes everything.

Elsewhere a filter of three conditions let an item through because one of them held, and let another one
through because the tested fields were not in the payload at all. Here an absent path meets nothing that asks
for a value.
"""

from collections.abc import Mapping
from typing import Any

from tests.field.road import NOTICE, Road

ALL = {
    "all": [
        {"field": "properties.status", "op": "eq", "value": "published"},
        {"field": "properties.notify", "op": "eq", "value": True},
        {"field": "properties.user", "op": "is_not_empty"},
    ]
}
A_OR_B_AND_C = {
    "any": [
        {"field": "a", "op": "eq", "value": True},
        {"all": [{"field": "b", "op": "eq", "value": True}, {"field": "c", "op": "eq", "value": True}]},
    ]
}
ASKING: list[tuple[str, Any]] = [("eq", "x"), ("contains", "x"), ("gt", 0), ("lt", 0)]


def test_every_leg_of_an_all_must_hold(road: Road) -> None:
    road.automation(NOTICE, conditions=ALL)
    road.update({"status": "published", "notify": False, "user": "u1"})
    road.update({"title": "x"})
    road.update({"status": "published", "notify": True, "user": "u1"})
    road.rest()
    assert road.ends() == ["conditions", "conditions", "SUCCEEDED"]
    assert road.notices() == ["Done"]
    one_false, absent, _ = road.runs()
    assert road.why(one_false.id) == ["properties.notify does not meet eq"]
    assert road.why(absent.id) == [
        "properties.status is not set",
        "properties.notify is not set",
        "properties.user is not set",
    ]


def test_an_absent_path_meets_nothing_that_asks_for_a_value(road: Road) -> None:
    for op, value in ASKING:
        road.automation(NOTICE, conditions={"all": [{"field": "properties.gone", "op": op, "value": value}]})
    road.update({"title": "x"})
    road.rest()
    assert road.ends() == ["conditions"] * len(ASKING)
    assert {reason for run in road.runs() for reason in road.why(run.id)} == {"properties.gone is not set"}


def test_a_group_in_a_group_binds_tighter(road: Road) -> None:
    road.automation(NOTICE, on="thing.seen", conditions=A_OR_B_AND_C)
    events: list[Mapping[str, bool]] = [
        {"a": True, "b": False, "c": False},
        {"a": False, "b": True, "c": False},
    ]
    for event in events:
        road.publish("thing.seen", event)
    road.rest()
    assert road.ends() == ["SUCCEEDED", "conditions"]
