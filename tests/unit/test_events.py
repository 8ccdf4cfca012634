"""The door: what an entry of the stream must hold, what is mended, and what is refused with its field."""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadEvent
from shared.model.event_fields import LATEST, format_instant, parse_instant
from shared.model.events import (
    Context,
    Event,
    EventDraft,
    decode_entry,
    encode_fields,
    event_from_json,
    event_to_json,
    flatten,
)
from shared.model.json_limits import MAX_DEPTH, clean_text, read_object

ENTRY = "1767225600000-3"
CONTEXT = {"automationId": "a1", "runId": "r2", "rootRunId": "r1", "depth": 2}


def raw(**fields: bytes | str | None) -> dict[bytes, bytes]:
    given: dict[str, bytes | str | None] = {
        "type": "order.placed",
        "workspaceId": "w1",
        "payload": b'{"total":5}',
        **fields,
    }
    return {
        name.encode(): value if isinstance(value, bytes) else value.encode()
        for name, value in given.items()
        if value is not None
    }


def decode(**fields: bytes | str | None) -> Event:
    return decode_entry(ENTRY, raw(**fields))


def refusal(**fields: bytes | str | None) -> BadEvent:
    with pytest.raises(BadEvent) as caught:
        decode(**fields)
    return caught.value


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def test_the_least_entry_becomes_an_event_at_its_own_time() -> None:
    event = decode()
    assert (event.type, event.workspace_id, event.payload) == ("order.placed", "w1", {"total": 5})
    assert (event.id, event.source, event.context, event.sanitized) == (None, None, None, False)
    assert event.occurred_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert (event.stamp, event.write_stamp, event.depth) == ((1767225600000, 3), (1767225600000, 3), 0)


def test_all_fields_are_read() -> None:
    event = decode(
        id="o-17",
        source="shop",
        occurredAt="2026-03-01T10:30:00.5+01:00",
        context=json.dumps({**CONTEXT, "stamp": "7-8"}),
        other="ignored",
    )
    assert (event.id, event.source) == ("o-17", "shop")
    assert event.occurred_at == datetime(2026, 3, 1, 9, 30, 0, 500_000, tzinfo=UTC)
    assert event.context == Context("a1", "r2", "r1", 2, (7, 8))
    assert (event.depth, event.write_stamp, event.stamp) == (2, (7, 8), (1767225600000, 3))


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({}, f"entry:{ENTRY}"),
        ({"id": ""}, f"entry:{ENTRY}"),
        ({"source": "shop"}, f"entry:{ENTRY}"),
        ({"id": "o-17"}, "id:o-17"),
        ({"id": "o-17", "source": "shop"}, "s:shop|o-17"),
        ({"id": "c", "source": "a|b"}, "s:a%7Cb|c"),
        ({"id": "b|c", "source": "a"}, "s:a|b|c"),
    ],
)
def test_the_key_is_the_publishers_id_or_the_entry(fields: dict[str, str], key: str) -> None:
    assert decode(**fields).key == key


def test_the_hash_knows_type_and_payload_whatever_the_order() -> None:
    one = decode(payload=b'{"a":1,"b":{"c":2,"d":3}}', id="x")
    assert one.hash == decode(payload=b'{"b": {"d":3,"c":2}, "a":1}', id="y").hash
    assert one.hash != decode(payload=b'{"a":1,"b":{"c":2,"d":4}}').hash
    assert one.hash != decode(payload=b'{"a":1,"b":{"c":2,"d":3}}', type="order.paid").hash


def test_conditions_and_templates_see_the_payload_at_the_top() -> None:
    assert flatten(decode()) == {"type": "order.placed", "payload": {"total": 5}, "total": 5}


@pytest.mark.parametrize("field", ["type", "workspaceId", "payload"])
def test_a_missing_field_is_named(field: str) -> None:
    assert refusal(**{field: None}).field == field
    assert refusal(**{field: b""}).field == field


@pytest.mark.parametrize("field", ["type", "workspaceId", "payload", "id", "source", "occurredAt", "context"])
def test_bytes_that_are_not_utf8_are_refused(field: str) -> None:
    fault = refusal(**{field: b"\x00\xff\xfe"})
    assert (fault.field, fault.reason) == (field, "is not UTF-8")


@pytest.mark.parametrize(
    "type_",
    ["order", "Order.placed", "order.", ".placed", "order placed", "order.placed\n", "1.2", "o.p" + "p" * 98],
)
def test_a_type_is_noun_and_verb(type_: str) -> None:
    assert refusal(type=type_).field == "type"


@pytest.mark.parametrize("type_", ["order.placed", "a.b", "a_1.b_2.c3", "o." + "p" * 98])
def test_own_types_are_taken(type_: str) -> None:
    assert decode(type=type_).type == type_


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workspaceId", "w" * 101),
        ("workspaceId", "w\n1"),
        ("workspaceId", "w\x00"),
        ("id", "i" * 201),
        ("source", "s" * 101),
        ("occurredAt", "yesterday"),
        ("occurredAt", "2026-03-01"),
        ("occurredAt", "2026-03-01T09:30:00"),
        ("occurredAt", "2026-02-30T09:30:00Z"),
        ("occurredAt", "1969-12-31T23:59:59Z"),
        ("occurredAt", "2200-01-01T00:00:01Z"),
        ("occurredAt", "0001-01-01T00:00:00+10:00"),
        ("occurredAt", "1767225600"),
        ("payload", "[]"),
        ("payload", '"text"'),
        ("payload", "null"),
        ("payload", "{"),
        ("payload", '{"a":1} x'),
        ("payload", "\ufeff{}"),
        ("payload", '{"a":NaN}'),
        ("payload", '{"a":-Infinity}'),
        ("payload", '{"a":1e999}'),
        ("payload", '{"a":9223372036854775808}'),
        ("payload", '{"a":-9223372036854775809}'),
        ("payload", '{"a":' + "1" * 4301 + "}"),
        ("payload", '{"a":1,"a":2}'),
        ("payload", '{"a":1,"b":{"c":"x:y","c":"x"}}'),
        ("payload", '{"a":{"x":1},"a":{"x":1}}'),
        ("payload", '{"a":"\\u003a","a":":"}'),
        ("payload", '{"a" :1, "\\u0061":2}'),
        ("payload", b'{"a":"\xed\xa0\x80"}'),
        ("payload", '{"a":[' + "1," * 10_000 + "1]}"),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_its_field(field: str, value: str | bytes) -> None:
    assert refusal(**{field: value}).field == field


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 200, 1_030, 5_000, 40_000])
def test_deep_nesting_is_refused_before_it_can_hurt(depth: int) -> None:
    assert refusal(payload=nested(depth)).reason == "is nested more than 32 levels deep"


def test_nesting_up_to_the_limit_is_taken() -> None:
    assert decode(payload=nested(MAX_DEPTH)).payload == json.loads(nested(MAX_DEPTH))
    assert decode(payload=b'{"\\u003a":' + nested(MAX_DEPTH - 1) + b"}").payload[":"]


@pytest.mark.parametrize(
    "hostile", [b'"' + b'\\"' * 120_000 + b"\\", b'{"a":"' + b"\\" * 200_001, b'"[' * 100_000]
)
def test_text_that_is_not_json_is_refused_in_linear_time(hostile: bytes) -> None:
    assert refusal(payload=hostile).field == "payload"


def test_bounds_themselves_are_taken() -> None:
    payload = b'{"a":9223372036854775807,"b":-9223372036854775808,"c":1e300,"d":12345678901234567890.5}'
    assert decode(payload=payload).payload == json.loads(payload)
    assert len(decode(payload=b'{"a":[' + b"1," * 9_997 + b"1]}").payload["a"]) == 9_998
    assert decode(id="i" * 200, source="s" * 100, workspaceId="w" * 100, occurredAt="2200-01-01T00:00:00Z").id


def test_an_entry_of_256_kib_is_taken_and_one_more_byte_is_not() -> None:
    others = sum(len(name) + len(value) for name, value in raw(payload='{"a":""}').items())
    most = '{"a":"' + "x" * (262_144 - others) + '"}'
    assert len(decode(payload=most).payload["a"]) == 262_144 - others
    assert refusal(payload=most + " ").field == "entry"
    assert refusal(other="x" * 20_000_000).field == "entry"


@pytest.mark.parametrize(
    ("payload", "kept"),
    [
        (b'{"a":"a\\u0000b"}', {"a": "a\ufffdb"}),
        (b'{"a":"\\ud83d"}', {"a": "\ufffd"}),
        (b'{"a":["\\ude00\\ud83d"]}', {"a": ["\ufffd\ufffd"]}),
        (b'{"k\\u0000":{"\\udfff":1}}', {"k\ufffd": {"\ufffd": 1}}),
    ],
)
def test_texts_that_sql_cannot_hold_are_mended_and_flagged(payload: bytes, kept: dict[str, Any]) -> None:
    event = decode(payload=payload)
    assert (event.payload, event.sanitized) == (kept, True)


@pytest.mark.parametrize(
    ("payload", "kept"),
    [
        ('{"a":"Zoë 😀"}', "Zoë 😀"),
        ('{"a":"Zo\\u00eb \\ud83d\\ude00"}', "Zoë 😀"),
        ('{"a":"\\\\u0000"}', "\\u0000"),
        ('{"a":"\\u003a:\\u003A"}', ":::"),
        ('{"a" : "x : y, \\"b\\":1"}', 'x : y, "b":1'),
    ],
)
def test_other_texts_stay_as_they_are(payload: str, kept: str) -> None:
    event = decode(payload=payload)
    assert (event.payload, event.sanitized) == ({"a": kept}, False)


def test_a_nul_in_id_or_source_is_mended_too() -> None:
    event = decode(id="a\x00", source="b\x00")
    assert (event.id, event.source, event.sanitized) == ("a\ufffd", "b\ufffd", True)


@pytest.mark.parametrize(
    "change",
    [
        {"automationId": ""},
        {"automationId": 7},
        {"runId": None},
        {"rootRunId": "r" * 201},
        {"rootRunId": "r\n"},
        {"depth": -1},
        {"depth": 1001},
        {"depth": True},
        {"depth": "2"},
        {"depth": 1.0},
        {"stamp": "7"},
        {"stamp": [7, 8]},
        {"stamp": "-7-8"},
        {"stamp": "9999999999999-1"},
        {"runId": "r\x00"},
        {"more": 1},
    ],
)
def test_a_context_out_of_shape_is_refused(change: dict[str, Any]) -> None:
    assert refusal(context=json.dumps({**CONTEXT, **change})).field == "context"


def test_a_change_that_no_run_has_made_carries_its_stamp_alone() -> None:
    event = decode(context='{"stamp": "7-8"}')
    assert (event.context, event.depth, event.write_stamp, event.stamp[1]) == (None, 0, (7, 8), 3)
    assert event_from_json(event_to_json(event)) == event
    for context in ('{"stamp": "7-8", "depth": 0}', '{"stamp": null}', '{"stamp": "soon"}', "{}"):
        assert refusal(context=context).field == "context"


@pytest.mark.parametrize("missing", CONTEXT)
def test_a_context_is_whole(missing: str) -> None:
    assert refusal(context=json.dumps({k: v for k, v in CONTEXT.items() if k != missing})).field == "context"


def test_what_no_automation_emitted_says_so_and_survives_the_way() -> None:
    event = decode_entry("5-0", raw(context=json.dumps({**CONTEXT, "automationId": None})))
    assert event.context is not None
    assert event.context.automation_id is None
    assert event_from_json(event_to_json(event)) == event
    assert refusal(context=json.dumps({**CONTEXT, "runId": None})).field == "context"


@pytest.mark.parametrize("payload", [{}, {"conversation": 5}, {"conversation": {"status": "open"}}])
def test_a_message_needs_its_conversation(payload: dict[str, Any]) -> None:
    assert refusal(type="message.created", payload=json.dumps(payload)).field == "payload"


@pytest.mark.parametrize("entry_id", ["", "5", "a-1", "5-", "-5", "18446744073709551615-1", "٣-1", "1-1-1"])
def test_an_entry_id_out_of_bounds_is_refused(entry_id: str) -> None:
    with pytest.raises(BadEvent) as caught:
        decode_entry(entry_id, raw())
    assert caught.value.field == "entry id"


def test_what_cannot_be_written_is_refused_with_its_field() -> None:
    for payload in ({"a": object()}, {"a": 2**70}, {1: 2}):
        with pytest.raises(BadEvent, match="payload"):
            encode_fields(EventDraft("order.placed", "w1", payload))  # type: ignore[arg-type]
    with pytest.raises(BadEvent, match="entry"):
        encode_fields(EventDraft("order.placed", "w1", {"a": "é" * 140_000}))


def test_a_lone_surrogate_is_mended_when_written() -> None:
    fields = encode_fields(EventDraft("order.placed", "w1", {"a": ["\ud83d"]}))
    assert fields == {"type": "order.placed", "workspaceId": "w1", "payload": '{"a":["\ufffd"]}'}


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
LEAF = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT
FINITE = LEAF.filter(lambda leaf: leaf not in (float("inf"), float("-inf")))
JSON = st.recursive(
    FINITE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)
NAME = st.text("abcxyz-19: é|", min_size=1, max_size=30)
STAMP = st.tuples(st.integers(0, 10**12), st.integers(0, 2**63 - 1))
DRAFT = st.builds(
    EventDraft,
    type=st.from_regex(r"[a-z][a-z0-9_]{0,9}(\.[a-z0-9_]{1,9}){1,3}", fullmatch=True).filter(
        lambda type_: type_ != "message.created"
    ),
    workspace_id=NAME,
    payload=st.dictionaries(TEXT, JSON, max_size=6),
    id=st.none() | NAME,
    occurred_at=st.none()
    | st.datetimes(
        datetime(1971, 1, 1),  # noqa: DTZ001 - the strategy adds the zone
        datetime(2199, 1, 1),  # noqa: DTZ001 - the strategy adds the zone
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=9))]),
    ),
    context=st.none()
    | st.builds(Context, NAME, NAME, NAME, depth=st.integers(0, 1000), stamp=st.none() | STAMP),
    source=st.none() | NAME,
    written=st.none(),
)


@given(draft=DRAFT)
def test_what_is_written_is_read_back(draft: EventDraft) -> None:
    event = decode_entry(ENTRY, {k.encode(): v.encode() for k, v in encode_fields(draft).items()})
    assert (event.type, event.workspace_id, event.payload) == (draft.type, draft.workspace_id, draft.payload)
    assert (event.id, event.context, event.source) == (draft.id, draft.context, draft.source)
    assert event.occurred_at == (draft.occurred_at or datetime(2026, 1, 1, tzinfo=UTC))
    assert not event.sanitized
    assert event_from_json(orjson.loads(orjson.dumps(event_to_json(event)))) == event


def ends_well(fields: Mapping[bytes, bytes]) -> None:
    with suppress(BadEvent):
        assert decode_entry(ENTRY, fields).type


@given(
    fields=st.dictionaries(st.sampled_from([b"type", b"workspaceId", b"payload", b"context"]), st.binary())
)
def test_any_bytes_end_as_an_event_or_as_a_bad_event(fields: dict[bytes, bytes]) -> None:
    ends_well(fields)


PIECE = st.sampled_from(
    [
        '{"a":',
        "}",
        "[",
        "]",
        '"',
        "\\",
        "\\u0000",
        "\\ud800",
        ",",
        ":",
        "1",
        "-",
        "1e9",
        "NaN",
        "null",
        " ",
        '"b"',
    ]
)


@given(text=st.lists(PIECE, max_size=30).map("".join))
def test_any_near_json_ends_as_an_event_or_as_a_bad_event(text: str) -> None:
    ends_well(raw(payload='{"a":' + text + "}"))
    ends_well(raw(context=text, id=text, source=text, occurredAt=text))


@given(
    payload=st.dictionaries(TEXT, JSON, max_size=6),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
def test_the_fast_and_the_slow_reader_agree(
    payload: dict[str, Any], ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(payload, ensure_ascii=ascii_only, indent=indent)
    assert read_object("payload", text.encode()).value == json.loads(text)


@given(name=TEXT, value=TEXT, others=st.dictionaries(TEXT, JSON, max_size=4))
def test_a_duplicate_key_never_passes(name: str, value: str, others: dict[str, Any]) -> None:
    pairs = [f"{json.dumps(k)}:{json.dumps(v)}" for k, v in [(name, value), *others.items(), (name, value)]]
    with pytest.raises(BadEvent, match="duplicate key"):
        read_object("payload", ("{" + ",".join(pairs) + "}").encode())


@given(text=st.text(st.characters()))
def test_cleaned_text_can_be_stored(text: str) -> None:
    cleaned = clean_text(text)
    assert "\x00" not in cleaned
    assert len(cleaned) == len(text)
    assert cleaned.encode().decode() == cleaned


@pytest.mark.parametrize("text", ["2026-03-01t09:30:00z", "2026-03-01 09:30:00.123456789-00:00"])
def test_rfc_3339_allows_some_freedom(text: str) -> None:
    assert parse_instant(text).replace(microsecond=0) == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def test_an_instant_is_written_in_utc() -> None:
    assert (
        format_instant(datetime(2026, 3, 1, 9, 30, tzinfo=timezone(timedelta(hours=2))))
        == "2026-03-01T07:30:00Z"
    )
    assert parse_instant(format_instant(LATEST)) == LATEST
