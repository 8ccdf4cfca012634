"""An old update arrives after the new one, and wins.

The first notification is slow and answered 503; the second, of a newer state, gets through at once; then the
first is repeated. Elsewhere the receiver ended on the outdated state. Runs may overtake each other here too,
so every post says which entry it tells of, and a write of ours that comes too late leaves newer values alone.
"""

import json
from typing import Any

from tests.field.conftest import Open
from tests.field.road import Road
from tests.receiver import Step
from tests.rooms import tree
from tests.waiting import poll

ON_STATUS = {"type": "PROPERTY_CHANGED", "config": {"properties": ["status"]}}
STATUS = {"status": "{{ properties.status }}"}
WRITE = {"type": "UPDATE_RECORD", "config": {"properties": STATUS}}


def overtaken(road: Road) -> list[str]:
    """Publish two states; the second passes the first at the endpoint. Give the entry ids."""
    older = road.update({"status": "required"}, "status")
    road.go()
    poll(lambda: road.receiver.deliveries("/hook"))
    newer = road.update({"status": "verified"}, "status")
    road.rest()
    road.wait(1)
    return [older, newer]


def test_a_receiver_can_tell_a_late_post_by_its_entry(open_here: Open) -> None:
    road = open_here(script={"/hook": [Step(503, after_s=0.3), 200]})
    road.automation(road.hook("/hook", {"body": STATUS}), on=ON_STATUS)
    older, newer = overtaken(road)
    assert road.ends() == ["SUCCEEDED", "SUCCEEDED"]
    posts = road.receiver.deliveries("/hook")
    told = [(json.loads(post.body)["status"], post.headers["x-knockon-entry-id"]) for post in posts]
    assert told == [("required", older), ("verified", newer), ("required", older)]
    assert all(post.headers["x-knockon-occurred-at"] for post in posts)
    assert max(told, key=lambda each: stamp(each[1]))[0] == "verified"


def test_a_late_write_leaves_what_is_newer_alone(open_here: Open) -> None:
    road = open_here(script={"/hook": [Step(503, after_s=0.3), 200]})
    road.automation(road.hook("/hook", {"body": STATUS}), WRITE, on=ON_STATUS)
    overtaken(road)
    assert road.ends() == ["SUCCEEDED", "SUCCEEDED"]
    assert road.data("r1") == {"status": "verified"}
    late, _ = (tree(run.output)["actions"]["2"] for run in road.runs())
    assert (late["changed"], late["stale"]) == ([], ["status"])
    assert len(road.told("record.updated")) == 2


def test_within_a_run_an_action_waits_for_the_one_before(open_here: Open) -> None:
    road = open_here(script={"/first": [Step(after_s=0.1)]})
    road.automation(road.hook("/first"), road.hook("/second"), on=ON_STATUS)
    for number in range(5):
        road.update({"status": number}, "status")
    road.rest()
    assert road.ends() == ["SUCCEEDED"] * 5
    for run in road.runs():
        first, second = (post.at for post in posts_of(road, run))
        assert second - first >= 0.1


def posts_of(road: Road, run: Any) -> list[Any]:
    """Give the posts of a run by position."""
    posts = [post for post in road.receiver.deliveries() if post.run_id == run.id]
    return sorted(posts, key=lambda post: post.position)


def stamp(entry_id: str) -> tuple[int, ...]:
    return tuple(map(int, entry_id.split("-")))
