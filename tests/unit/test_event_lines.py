"""The command takes of an event what the engine takes of a raw entry, and changes nothing on the way."""

from collections.abc import Iterable
from typing import Any

import orjson
import pytest

from knockon.client import EventDraft, Publisher
from knockon.event_lines import PLACE, BadLine, publish_lines, read_event, read_payload
from shared.errors import BadEvent, ConfigError
from shared.model.events import decode_entry

DEEPEST = '{"a":' * 32 + "1" + "}" * 32
WIDEST = '{"a": [' + ",".join(["0"] * 9_998) + "]}"

REFUSED = [
    ('{"a": 1, "a": 2}', "has a duplicate key: 'a'"),
    ('{"a": {"b": 1, "b": 1}}', "has a duplicate key: 'b'"),
    ('{"a": 9223372036854775808}', "holds an integer beyond 64 bits"),
    ('{"a": -9223372036854775809}', "holds an integer beyond 64 bits"),
    ('{"a": 123456789012345678901234567890}', "holds an integer beyond 64 bits"),
    ('{"a": NaN}', "holds NaN"),
    ('{"a": -Infinity}', "holds -Infinity"),
    ('{"a": 1e999}', "holds a number that is too large"),
]


class Kept(Publisher):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__("redis://127.0.0.1:1/0")
        self.drafts: list[EventDraft] = []

    def publish_many(self, events: Iterable[EventDraft]) -> list[str]:
        self.drafts += events
        return []


def published(*lines: str) -> list[EventDraft]:
    kept = Kept()
    for _ in publish_lines(kept, lines, "w1"):
        pass
    return kept.drafts


def line(payload: str) -> str:
    return f'{{"type": "order.placed", "payload": {payload}}}'


def decoded(payload: str) -> Any:
    fields = {b"type": b"order.placed", b"workspaceId": b"w1", b"payload": payload.encode()}
    return decode_entry(PLACE, fields).payload


@pytest.mark.parametrize(("payload", "reason"), REFUSED)
def test_what_an_entry_may_not_hold_is_refused_with_its_field(payload: str, reason: str) -> None:
    with pytest.raises(BadEvent, match=f"^payload: {reason}"):
        decoded(payload)
    with pytest.raises(ConfigError, match=f"^--payload: {reason}"):
        read_payload(payload)
    with pytest.raises(BadLine, match=f"^line 2: event: {reason}"):
        published(line("{}"), line(payload))


def test_a_key_of_the_event_stands_once_too() -> None:
    with pytest.raises(BadLine, match="line 1: event: has a duplicate key: 'id'"):
        published('{"type": "order.placed", "id": "a", "id": "b", "payload": {}}')


@pytest.mark.parametrize(
    "payload", [DEEPEST, WIDEST, '{"a": 9223372036854775807}', '{"a": "x\\u0000"}'], ids=range(4)
)
def test_what_an_entry_may_hold_is_sent_as_it_was(payload: str) -> None:
    assert decoded(payload)
    assert published(line(payload))[0].payload == read_payload(payload) == orjson.loads(payload)


@pytest.mark.parametrize("payload", [f'{{"a": {DEEPEST}}}', WIDEST.replace("[", "[0, 0, ")], ids=range(2))
def test_more_than_an_entry_may_hold_is_refused_in_a_line_too(payload: str) -> None:
    with pytest.raises(BadEvent):
        decoded(payload)
    with pytest.raises(BadLine):
        published(line(payload))


def test_lone_surrogates_are_refused_rather_than_mended() -> None:
    with pytest.raises(ConfigError, match="--payload: holds a lone surrogate"):
        read_payload('{"a": "\\ud83d"}')
    with pytest.raises(BadLine, match="line 1: event: holds a lone surrogate"):
        published(line('{"a": "\\ud83d"}'))


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ConfigError, match="--payload: is not UTF-8"):
        read_payload('{"a": "\udcff"}')


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"type": "automation.executed"}, "type: is the engine's own"),
        ({"type": "order.placed", "workspaceId": 7}, "workspaceId: must be text"),
        ({"type": "order.placed", "id": "\udcff"}, "id: is not UTF-8"),
        ({"type": "order.placed", "more": 1}, "more: is unknown"),
    ],
)
def test_a_field_that_cannot_be_taken_is_named(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(BadEvent, match=f"^{said}"):
        read_event(fields, "w1")
