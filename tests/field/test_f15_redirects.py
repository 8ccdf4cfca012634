"""A 302 turns the POST into an empty GET, and counts as delivered.

Elsewhere the client followed without the body, the login page answered 200, and the run said success. Here
301, 302 and 303 are a fatal answer. 307 and 308, which keep method and body, are followed with the very same
request, and another party gets neither secrets nor a signature.
"""

import json
from pathlib import Path

from tests.field.conftest import Open
from tests.receiver import Receiver, Script, Step
from tests.rooms import tree

BODY = {"text": "x" * 189}
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HEADERS = {"Authorization": "Bearer tok-7Q", "X-Api-Key": "tok-7Q"}


def to(status: int, location: str) -> list[int | Step]:
    return [Step(status, headers={"location": location})]


REFUSED: Script = {
    "/a301": to(301, "/login"),
    "/a302": to(302, "/login"),
    "/a303": to(303, "/login"),
    "/itself": to(302, "/itself"),
    "/inside": to(302, "http://127.0.0.1/"),
}
KEPT: Script = {"/a307": to(307, "/b"), "/a308": to(308, "/b")}


def test_a_redirect_that_drops_the_body_is_a_fatal_answer(open_here: Open) -> None:
    road = open_here(script=REFUSED)
    ids = {path: road.automation(road.hook(path, {"body": BODY}), on="order.placed") for path in REFUSED}
    road.publish("order.placed")
    road.rest()
    for path, automation_id in ids.items():
        run = road.run(automation_id)
        assert (run.status, run.retry_count, road.code(run)) == ("FAILED", 0, "WEBHOOK_HTTP_ERROR")
        status = path[2:] if path[2:].isdigit() else "302"
        assert f"answered {status}" in tree(run.error)["message"]
        assert len(road.receiver.deliveries(path)) == 1
    assert road.receiver.deliveries("/login") == []
    assert {post.method for post in road.receiver.deliveries()} == {"POST"}


def test_a_redirect_that_keeps_the_body_is_followed_with_the_same_request(open_here: Open) -> None:
    road = open_here(script=KEPT)
    for path in KEPT:
        road.automation(road.hook(path, {"body": BODY}), on="order.placed")
    road.publish("order.placed")
    road.rest()
    assert road.ends() == ["SUCCEEDED", "SUCCEEDED"]
    posts = road.receiver.deliveries()
    assert len(posts) == 4
    assert {(post.method, len(post.body)) for post in posts} == {("POST", 200)}
    assert all(json.loads(post.body) == BODY for post in posts)
    for run in road.runs():
        assert len([post for post in posts if post.run_id == run.id]) == 2


def test_another_host_never_gets_a_secret(open_here: Open, tmp_path: Path) -> None:
    statuses = (301, 302, 303, 307, 308)
    with Receiver(tmp_path / "other.jsonl") as other:
        road = open_here(script={f"/a{status}": to(status, other.url(f"/b{status}")) for status in statuses})
        config = {"body": BODY, "headers": HEADERS, "secret": SECRET}
        for status in statuses:
            road.automation(road.hook(f"/a{status}", config), on="order.placed")
        road.publish("order.placed")
        road.rest()
        arrived = other.deliveries()
    assert sorted(post.path for post in arrived) == ["/b307", "/b308"]
    for post in arrived:
        assert "tok-7Q" not in str(post.headers)
        assert "webhook-signature" not in post.headers
    firsts = road.receiver.deliveries()
    assert len(firsts) == len(statuses)
    for post in firsts:
        assert {"authorization", "x-api-key", "webhook-signature"} <= set(post.headers)
