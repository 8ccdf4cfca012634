"""An "updated" event though nothing changed.

Elsewhere every write fired the webhook, whether it changed anything or not, which also fed loops between two
systems that keep each other up to date. Here an update says what it changed, and a property trigger that
watches none of it starts nothing.
"""

from collections.abc import Mapping
from typing import Any

from tests.field.road import Road

STORED = {"done": True, "amount": 10.0}


def watch(*names: str) -> dict[str, Any]:
    return {"type": "PROPERTY_CHANGED", "config": {"properties": list(names)}}


def test_an_update_that_changed_nothing_starts_no_property_trigger(road: Road) -> None:
    road.automation(road.hook("/done"), on=watch("done"))
    road.automation(road.hook("/any"), on=watch("*"))
    road.automation(road.hook("/sums"), on=watch("amount", "tags"))
    road.update({"done": True})
    road.update({"done": True, "note": "x"}, "note")
    road.update({"done": False}, "done")
    road.update({"amount": 10})
    road.update({"tags": ["b", "a"]})
    road.rest()
    counts = [len(road.receiver.deliveries(path)) for path in ("/done", "/any", "/sums")]
    assert counts == [1, 2, 0]
    assert road.ends() == ["SUCCEEDED"] * 3


def test_our_own_write_of_what_is_there_tells_of_no_change(road: Road) -> None:
    writes: list[Mapping[str, Any]] = [
        {"done": True},
        {"done": True, "note": "x"},
        {"done": False},
        {"amount": 10},
    ]
    for number, properties in enumerate(writes):
        config = {"record_id": "r1", "properties": properties}
        road.automation({"type": "UPDATE_RECORD", "config": config}, on=f"write.n{number}")
    road.automation(road.hook("/done"), on=watch("done", "amount"))
    road.publish("record.created", {"recordId": "r1", "databaseId": "d1", "properties": STORED})
    for number in range(len(writes)):
        road.publish(f"write.n{number}")
        road.rest()
    changes = [event.payload["changedProperties"] for event in road.told("record.updated")]
    assert changes == [["note"], ["done"]]
    assert len(road.receiver.deliveries("/done")) == 1
