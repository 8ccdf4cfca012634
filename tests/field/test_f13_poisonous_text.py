"""A NUL byte in an error text jams the consumer.

Elsewhere the record of a failure could not be stored as JSON, so the message was never acknowledged, came
back for ever, and blocked all behind it. Here such text is mended at every door and marked, long text is cut
on the border of a code point, and the entry is acknowledged.
"""

import json
from typing import Any

import orjson
import pytest

from executors.contract import ActionResult, RunContext
from shared.dead_stream import list_dead
from shared.errors import FatalError, RetryableError
from shared.model.actions import ActionConfig
from tests.field.conftest import Open
from tests.field.road import NOTICE, Road
from tests.raw_server import Exchange, RawServer
from tests.rooms import tree

LIMIT_BYTES = 65_536
POISON = b"\x00\xff\xfe"
NUL_EVENT = r'{"name": "Zo\u00eb \ud83d\ude00", "bad": "a\u0000b", "worse": "\ud83d"}'


def answering(status: str) -> Any:
    def mode(exchange: Exchange) -> None:
        exchange.send(f"HTTP/1.1 {status}\r\ncontent-length: {len(POISON)}\r\n\r\n".encode() + POISON)

    return mode


def test_a_poisonous_event_is_mended_and_holds_nobody_up(road: Road) -> None:
    road.automation(road.hook("/hook"), on="contact.seen")
    road.publish_raw({"type": "contact.seen", "workspaceId": "w1", "payload": NUL_EVENT})
    road.publish("contact.seen", {"name": "next"})
    road.rest()
    assert (road.ends(), road.post.pending()) == (["SUCCEEDED", "SUCCEEDED"], 0)
    assert list_dead(road.room.parts.redis, road.room.parts.keys, 10) == []
    kept = [tree(run.input) for run in road.runs()]
    assert [each["sanitized"] for each in kept] == [True, False]
    assert (kept[0]["payload"]["bad"], kept[0]["payload"]["worse"]) == ("a\ufffdb", "\ufffd")
    (first,) = [post for post in road.receiver.deliveries("/hook") if post.run_id == road.runs()[0].id]
    assert bytes.fromhex("5a6fc3ab20f09f9880") in first.body


def test_a_poisonous_answer_is_kept_as_text(road: Road) -> None:
    with RawServer({"/ok": answering("200 OK"), "/bad": answering("500 No")}) as server:
        for path in ("/ok", "/bad"):
            action = {"type": "SEND_WEBHOOK", "config": {"url": server.url(path)}, "retries": 0}
            road.automation(action, on="contact.seen")
        road.publish("contact.seen")
        road.rest()
    assert sorted(road.ends()) == ["DEAD_LETTER", "SUCCEEDED"]
    good, bad = sorted(road.runs(), key=lambda run: run.automation_id)
    assert tree(good.output)["actions"]["1"]["response"] == "\ufffd" * 3
    assert tree(bad.error)["code"] == "WEBHOOK_HTTP_RETRIABLE"
    assert (len(road.notices()), road.post.pending()) == (1, 0)


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (RetryableError("WEBHOOK_HTTP_RETRIABLE", "no \ud83d \x00"), "DEAD_LETTER"),
        (FatalError("WEBHOOK_HTTP_ERROR", "no \ud83d \x00"), "FAILED"),
        (RuntimeError("no \ud83d \x00"), "FAILED"),
    ],
    ids=["retryable", "fatal", "unforeseen"],
)
def test_a_poisonous_error_text_is_stored_everywhere(open_here: Open, error: Exception, end: str) -> None:
    def fail(config: ActionConfig, run: RunContext) -> ActionResult:
        raise error

    road = open_here(executors={"SEND_WEBHOOK": fail})
    road.automation(road.hook("/", retries=0), on="contact.seen")
    road.automation(NOTICE, on="contact.next")
    road.publish("contact.seen")
    road.publish("contact.next")
    road.rest()
    run, after = road.runs()
    assert (run.status, after.status, road.post.pending()) == (end, "SUCCEEDED", 0)
    assert "no \ufffd \ufffd" in tree(run.error)["message"]
    (executed,) = [event for event in road.told("automation.executed") if event.payload["runId"] == run.id]
    assert "no \ufffd \ufffd" in executed.payload["error"]["message"]
    assert len(road.notices()) == (2 if end == "DEAD_LETTER" else 1)


def test_a_long_event_is_cut_between_two_characters(road: Road) -> None:
    texts = ["x" * shift + "😀" * 50_000 for shift in range(4)]
    road.automation(road.hook("/hook"), on="contact.seen")
    for text in texts:
        road.publish("contact.seen", {"text": text})
    road.rest()
    posted = {post.run_id: json.loads(post.body)["text"] for post in road.receiver.deliveries("/hook")}
    for run, text in zip(road.runs(), texts, strict=True):
        kept = tree(run.input)
        assert kept["truncated"] is True
        assert len(orjson.dumps(kept)) <= LIMIT_BYTES
        shown = kept["payload"]["text"]
        assert 0 < len(shown) < len(text)
        assert text.startswith(shown)
        assert posted[run.id] == text
