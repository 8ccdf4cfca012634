"""Bodies of events: what is in bounds becomes entries of the stream, what is not is named."""

from typing import Any

import orjson
import pytest

from shared.errors import BadEvent
from shared.model.event_bodies import Item, read_data, read_items
from shared.model.events import decode_entry
from shared.model.published import Published, read_published

PLACED = {"type": "order.placed", "payload": {"orderId": 7}}
CLOUD = {"specversion": "1.0", "id": "c-1", "source": "/shop", "type": "order.placed", "data": {"n": 1}}


def read(*events: dict[str, Any]) -> list[Published]:
    body = orjson.dumps(list(events))
    return [read_published(item, "w1", "made-up") for item in read_items(body)]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"type": "nothing", "payload": {}}, "type"),
        ({"type": "automation.executed", "payload": {}}, "type"),
        ({"type": "order.placed"}, "payload"),
        ({"type": "order.placed", "payload": [1]}, "payload"),
        ({**PLACED, "workspaceId": "w2"}, "workspaceId"),
        ({**PLACED, "context": {}}, "context"),
        ({**PLACED, "id": 7}, "id"),
        ({**PLACED, "id": "x" * 201}, "id"),
        ({**PLACED, "occurredAt": "yesterday"}, "occurredAt"),
        ({**PLACED, "payload": {"text": "x" * 262_144}}, "entry"),
        ({"type": "message.created", "payload": {}}, "payload"),
        ({**CLOUD, "specversion": "0.3"}, "specversion"),
        ({**CLOUD, "source": ""}, "source"),
        ({**CLOUD, "data": [1]}, "data"),
        ({**CLOUD, "time": "x"}, "time"),
        ({**CLOUD, "workspaceid": "w2"}, "workspaceid"),
        ({**CLOUD, "data_base64": "AA=="}, "data_base64"),
        ({**CLOUD, "datacontenttype": "text/xml"}, "datacontenttype"),
    ],
)
def test_a_bad_event_is_named(bad: dict[str, Any], field: str) -> None:
    with pytest.raises(BadEvent) as among:
        read(PLACED, bad)
    assert among.value.field == f"events[1].{field}"
    with pytest.raises(BadEvent) as alone:
        read_published(Item("", bad), "w1", "made-up")
    assert alone.value.field == field


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"", 400, None),
        (b"{", 400, None),
        (b"\xff", 400, None),
        (b'{"type":"a.b","payload":{"n":NaN}}', 400, None),
        (b'\xef\xbb\xbf{"type":"a.b","payload":{}}', 400, None),
        (b"[]", 422, "events"),
        (b"7", 422, "events"),
        (b'[{"type":"a.b","payload":{}},7]', 422, "events[1]"),
        (b'{"events":[{"type":"a.b","payload":{}}],"events":[]}', 422, "events"),
        (b'{"type":"a.b","payload":{"a":1,"a":2}}', 400, None),
        (b'[{"type":"a.b","payload":{"n":99999999999999999999}}]', 400, None),
        (b'[{"type":"a.b","payload":' + b'{"a":' * 60 + b"1" + b"}" * 60 + b"}]", 400, None),
        (orjson.dumps([PLACED] * 501), 422, "events"),
        (b"[" * 5_000 + b"]" * 5_000, 400, None),
    ],
)
def test_what_is_no_event_at_all_is_refused(body: bytes, status: int, field: str | None) -> None:
    with pytest.raises(ValueError if status == 400 else BadEvent) as refused:
        read_items(body)
    assert getattr(refused.value, "field", None) == field


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ("\\ud800", "\ufffd"),
        ("\\udc00\\ud800", "\ufffd\ufffd"),
        ("\\ud83d\\ude00\\ude00", "😀\ufffd"),
        ("\\\\ud800", "\\ud800"),
        ("\\\\\\ud800", "\\\ufffd"),
    ],
)
def test_half_of_a_pair_is_replaced(escaped: str, text: str) -> None:
    body = f'{{"type": "a.b", "payload": {{"text": "{escaped}"}}}}'.encode()
    (item,) = read_items(body)
    assert item.value["payload"] == {"text": text}
    assert read_data(body) == item.value


@pytest.mark.parametrize("text", ["x", 'a "quoted" [1] {2}', "\\", '\\"', "{[", "é🎈\u0000"])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_objects_are_cut_where_they_end(text: str, depth: int) -> None:
    payload: Any = {"text": text, text: [text, {text: []}]}
    for _ in range(depth):
        payload = {"in": [payload, {}]}
    events = [{**PLACED, "payload": payload}, PLACED, {**PLACED, "payload": {}}]
    for body in (events, {"events": events}):
        items = read_items(orjson.dumps(body))
        assert [(item.place, item.value) for item in items] == [
            (f"events[{number}]", event) for number, event in enumerate(events)
        ]


def test_an_entry_has_what_was_sent_and_the_key_s_workspace() -> None:
    (published,) = read({**PLACED, "source": "shop", "occurredAt": "2026-01-02T03:04:05+01:00", "id": None})
    event = decode_entry("1-1", {name.encode(): value.encode() for name, value in published.fields.items()})
    assert (published.id, event.id, event.workspace_id) == ("made-up", "made-up", "w1")
    assert event.occurred_at.isoformat() == "2026-01-02T02:04:05+00:00"


def test_data_alone_is_an_object_within_the_limits() -> None:
    assert read_data(b'{"events": [{}]}') == {"events": [{}]}
    with pytest.raises(ValueError, match="JSON"):
        read_data(b"{")
    with pytest.raises(BadEvent, match="object"):
        read_data(b"[1]")
