"""`POST /v1/events`: all of a request goes to the stream or nothing, and what is wrong is named."""

from typing import Any

import orjson
import pytest

from shared.model.events import decode_entry
from shared.services.workspaces import Scope
from tests.calling import Api

PLACED = {"type": "order.placed", "payload": {"orderId": 7}}
CLOUD = {"specversion": "1.0", "id": "c-1", "source": "/shop", "type": "order.placed", "data": {"n": 1}}


def on_stream(api: Api) -> list[Any]:
    entries = api.backends.redis.xrange(api.backends.keys.stream)
    return [decode_entry(entry_id.decode(), fields) for entry_id, fields in entries]


def publish(api: Api, body: Any, kind: str = "application/json", **headers: str) -> Any:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    given = {"Content-Type": kind, **headers}
    return api("POST", "/v1/events", key=api.key(Scope.EVENTS_WRITE), content=raw, headers=given)


def test_one_event_goes_to_the_stream(api: Api) -> None:
    answer = publish(
        api, {**PLACED, "id": "o-7", "source": "shop", "occurredAt": "2026-01-02T03:04:05+01:00"}
    )
    assert answer.status_code == 202
    (event,) = on_stream(api)
    assert answer.json() == {"entries": [{"entry_id": event.entry_id, "id": "o-7"}]}
    assert (event.workspace_id, event.type, event.payload) == ("w1", "order.placed", {"orderId": 7})
    assert (event.source, event.occurred_at.isoformat()) == ("shop", "2026-01-02T02:04:05+00:00")


@pytest.mark.parametrize("shape", ["list", "events"])
def test_many_events_keep_their_order(api: Api, shape: str) -> None:
    many = [{**PLACED, "id": f"e{number}", "payload": {"n": [{"a": number}]}} for number in range(500)]
    answer = publish(api, many if shape == "list" else {"events": many})
    assert answer.status_code == 202
    assert [each["id"] for each in answer.json()["entries"]] == [each["id"] for each in many]
    assert [event.entry_id for event in on_stream(api)] == [
        each["entry_id"] for each in answer.json()["entries"]
    ]


def test_a_bad_event_is_named_and_nothing_is_published(api: Api) -> None:
    bad = {**PLACED, "workspaceId": "w2"}
    alone, among = publish(api, bad), publish(api, [PLACED, bad])
    assert (alone.status_code, alone.json()["details"]["field"]) == (422, "workspaceId")
    assert (among.status_code, among.json()["details"]["field"]) == (422, "events[1].workspaceId")
    assert on_stream(api) == []


def test_what_is_no_event_at_all_is_refused(api: Api) -> None:
    broken, empty = publish(api, b"{"), publish(api, b"[]")
    assert (broken.status_code, broken.json()["error"]) == (400, "malformed")
    assert (empty.status_code, empty.json()["details"]["field"]) == (422, "events")


def test_a_body_beyond_the_limit_is_not_read(api: Api) -> None:
    assert publish(api, b"[" + b" " * 16_777_216).status_code == 413
    assert publish(api, PLACED, "text/plain").status_code == 415


def test_cloud_events_come_structured_in_batches_and_with_headers(api: Api) -> None:
    timed = {**CLOUD, "time": "2026-01-02T03:04:05Z", "workspaceid": "w1", "subject": "x", "traceparent": "y"}
    assert publish(api, timed, "application/cloudevents+json; charset=utf-8").status_code == 202
    batch = [{**CLOUD, "id": "c-2"}, {**CLOUD, "id": "c-3", "data": None}]
    assert publish(api, batch, "application/cloudevents-batch+json").status_code == 202
    attributes = {"ce-specversion": "1.0", "ce-id": "c%2D4", "ce-source": "/shop", "ce-type": "order.placed"}
    assert publish(api, {"n": 4}, **attributes).status_code == 202
    assert publish(api, b"[1]", **attributes).json()["details"]["field"] == "data"
    events = on_stream(api)
    assert [(event.id, event.source) for event in events] == [(f"c-{n}", "/shop") for n in (1, 2, 3, 4)]
    assert [event.payload for event in events] == [{"n": 1}, {"n": 1}, {}, {"n": 4}]
    assert events[0].occurred_at.isoformat() == "2026-01-02T03:04:05+00:00"


@pytest.mark.parametrize(
    ("body", "kind", "field"),
    [
        (PLACED, "application/cloudevents+json", "specversion"),
        ([CLOUD], "application/cloudevents+json", "event"),
        (CLOUD, "application/cloudevents-batch+json", "events"),
        ([CLOUD, PLACED], "application/cloudevents-batch+json", "events[1].specversion"),
    ],
)
def test_a_type_of_body_says_what_must_be_in_it(api: Api, body: Any, kind: str, field: str) -> None:
    answer = publish(api, body, kind)
    assert (answer.status_code, answer.json()["details"]["field"]) == (422, field)


def test_events_without_an_id_have_the_same_in_each_try_of_a_request(api: Api) -> None:
    key = api.key(Scope.EVENTS_WRITE)
    first, again, other = [
        api("POST", "/v1/events", key=key, json=[PLACED, PLACED], headers={"Idempotency-Key": name})
        for name in ("k1", "k1", "k2")
    ]
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert len({event.id for event in on_stream(api)}) == 4
    assert {each["id"] for each in first.json()["entries"]}.isdisjoint(
        each["id"] for each in other.json()["entries"]
    )
