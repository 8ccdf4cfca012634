"""A condition's value that comes to nothing kills the run.

"The company is the one of the record": for a person without a company the value was empty, and elsewhere the
whole run was aborted with an input error. Here null equals null, an absent path makes the leaf false and is
named, and neither is a failure. And a name that comes to nothing in an action never means "all of them".
"""

import pytest

from tests.field.road import NOTICE, Road

SAME = {"all": [{"field": "company.id", "op": "eq", "value": "{{ properties.companyId }}"}]}


@pytest.mark.parametrize(
    ("company", "ends"),
    [("c1", ["conditions", "conditions", "SUCCEEDED"]), (None, ["SUCCEEDED", "conditions", "conditions"])],
)
def test_an_empty_value_is_compared_and_an_absent_one_is_named(
    road: Road, company: str | None, ends: list[str]
) -> None:
    road.automation(NOTICE, conditions=SAME)
    for properties in ({"companyId": None}, {}, {"companyId": "c1"}):
        road.update(properties, company={"id": company})
    road.rest()
    assert road.ends() == ends
    assert {run.status for run in road.runs()} == {"SUCCEEDED"}
    _, absent, _ = road.runs()
    assert road.why(absent.id) == ["the value needs properties.companyId, which is not set"]


def test_a_name_that_comes_to_nothing_selects_no_record(road: Road) -> None:
    config = {"record_id": "{{ companyId }}", "properties": {"touched": True}}
    road.automation({"type": "UPDATE_RECORD", "config": config}, on="order.placed")
    for record_id in ("r1", "r2"):
        road.publish("record.created", {"recordId": record_id, "databaseId": "d1", "properties": {"n": 1}})
    for company in ({"companyId": None}, {"companyId": ""}, {}):
        road.publish("order.placed", {**company, "recordId": "r1"})
    road.rest()
    assert [road.code(run) for run in road.runs()] == ["CONFIG_INVALID"] * 3
    assert [road.data(record_id) for record_id in ("r1", "r2")] == [{"n": 1}] * 2
    assert road.told("record.updated") == []
