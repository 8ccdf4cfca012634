"""A mail that begins "Hi Jane null!".

Elsewhere null became the word null in a customer's mail, while an absent field became empty; and a quotation
mark in a name broke the JSON around it. Here null and absent are both empty in text and null in JSON, and a
value is escaped for where it stands.
"""

import json
from typing import Any

from tests.field.road import Road

HELLO = "Hi {{ properties.first }} {{ properties.middle }}!"
JSON_TEXT = '{"name":"{{ properties.name }}","n":{{ properties.n }}}'
NAME = 'He said "hi"\nbye'


def notify(title: str) -> dict[str, Any]:
    return {"type": "CREATE_NOTIFICATION", "config": {"title": title, "body": title}}


def test_what_is_not_there_is_empty_in_text(road: Road) -> None:
    road.automation(notify(HELLO), road.hook("/hook", {"body": HELLO, "content_type": "text/plain"}))
    for middle in ({"middle": None}, {}, {"middle": ""}):
        road.update({"first": "Jane", **middle})
    road.rest()
    rows = road.room.all("SELECT title, body FROM notifications")
    assert [(row.title, row.body) for row in rows] == [("Hi Jane !", "Hi Jane !")] * 3
    assert [post.body for post in road.receiver.deliveries("/hook")] == [b"Hi Jane !"] * 3


def test_a_json_text_stays_json_whatever_is_in_it(road: Road) -> None:
    road.automation(road.hook("/hook", {"body": JSON_TEXT}))
    given: list[dict[str, Any]] = [{"n": 0}, {"n": False}, {"n": None}, {}, {"n": 'a"b'}]
    for properties in given:
        road.update({"name": NAME, **properties})
    road.rest()
    posts = {post.run_id: post.body for post in road.receiver.deliveries("/hook")}
    for run, properties in zip(road.runs(), given, strict=True):
        sent = json.loads(posts[run.id])
        assert sent == {"name": NAME, "n": properties.get("n")}
        assert type(sent["n"]) is type(properties.get("n"))
        assert rb"He said \"hi\"\nbye" in posts[run.id]


def test_an_object_keeps_the_types_of_its_values(road: Road) -> None:
    body = {"name": "{{ properties.name }}", "n": "{{ properties.n }}", "gone": "{{ properties.gone }}"}
    road.automation(road.hook("/hook", {"body": body}))
    road.update({"name": NAME, "n": 0})
    road.rest()
    (post,) = road.receiver.deliveries("/hook")
    assert json.loads(post.body) == {"name": NAME, "n": 0, "gone": None}
