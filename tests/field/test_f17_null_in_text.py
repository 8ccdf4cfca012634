"""A mail that begins "Hi Jane null!".

Elsewhere null became the word null in a customer's mail, while an absent field became empty; and a quotation
mark in a name broke the JSON around it. Here null and absent are both empty in text and null in JSON, and a
value is escaped for where it stands.
"""

import json
from typing import Any

import pytest

from tests.field.road import Road

HELLO = "Hi {{ properties.first }} {{ properties.middle }}!"
JSON_TEXT = '{"name":"{{ properties.name }}","n":{{ properties.n }}}'
WORDS = ("null", "none", "undefined", "[object")
NAME = 'He said "hi"\nbye'


def notify(title: str) -> dict[str, Any]:
    return {"type": "CREATE_NOTIFICATION", "config": {"title": title, "body": title}}


@pytest.mark.parametrize("middle", [{"middle": None}, {}, {"middle": ""}], ids=["null", "absent", "empty"])
def test_what_is_not_there_is_empty_in_text(road: Road, middle: dict[str, Any]) -> None:
    road.automation(notify(HELLO), road.hook("/hook", {"body": HELLO, "content_type": "text/plain"}))
    road.update({"first": "Jane", **middle})
    road.rest()
    assert road.notices() == ["Hi Jane !"]
    (post,) = road.receiver.deliveries("/hook")
    assert post.body == b"Hi Jane !"
    row = road.room.one("SELECT title, body FROM notifications")
    assert not any(word in f"{row.title}{row.body}".lower() for word in WORDS)


@pytest.mark.parametrize(
    ("given", "sent"),
    [({"n": 0}, 0), ({"n": False}, False), ({"n": None}, None), ({}, None), ({"n": 'a"b'}, 'a"b')],
    ids=["zero", "false", "null", "absent", "text"],
)
def test_a_json_text_stays_json_whatever_is_in_it(road: Road, given: dict[str, Any], sent: Any) -> None:
    road.automation(road.hook("/hook", {"body": JSON_TEXT}))
    road.update({"name": NAME, **given})
    road.rest()
    (post,) = road.receiver.deliveries("/hook")
    assert json.loads(post.body) == {"name": NAME, "n": sent}
    assert rb"He said \"hi\"\nbye" in post.body


def test_an_object_keeps_the_types_of_its_values(road: Road) -> None:
    body = {"name": "{{ properties.name }}", "n": "{{ properties.n }}", "gone": "{{ properties.gone }}"}
    road.automation(road.hook("/hook", {"body": body}))
    road.update({"name": NAME, "n": 0})
    road.rest()
    (post,) = road.receiver.deliveries("/hook")
    assert json.loads(post.body) == {"name": NAME, "n": 0, "gone": None}
