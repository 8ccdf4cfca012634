"""What the documentation says of events is what the door takes and refuses."""

from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from shared import dead_stream
from shared.errors import BadEvent
from shared.model import event_fields, events, json_limits
from shared.model.triggers import TriggerType
from shared.rules.triggering import FED_BY
from tests.pages import DOCS, names, page

PAGE = page("events.md")
SCHEMA: dict[str, Any] = orjson.loads((DOCS / "event.schema.json").read_bytes())
EVENT: dict[str, Any] = {"type": "order.placed", "workspaceId": "w", "payload": {}}
CONTEXT = {"automationId": "a", "runId": "r", "rootRunId": "r", "depth": 0}
MESSAGE = {**EVENT, "type": "message.created"}

GOOD = [
    EVENT,
    {**EVENT, "id": "", "source": "", "occurredAt": ""},
    {**EVENT, "id": "x" * 200, "source": "y" * 100, "workspaceId": "w" * 100},
    {**EVENT, "occurredAt": "2026-03-01T09:30:00.123456789+02:00"},
    {**EVENT, "context": {**CONTEXT, "stamp": "1700000000000-0"}},
    {**EVENT, "context": {"stamp": "1700000000000-0"}},
    {**EVENT, "another": "field"},
    {**MESSAGE, "payload": {"conversation": {"id": 7}}},
]
BAD = [
    {"type": "order.placed", "workspaceId": "w"},
    {"workspaceId": "w", "payload": {}},
    {**EVENT, "type": "order"},
    {**EVENT, "type": "Order.Placed"},
    {**EVENT, "type": f"order.{'x' * 100}"},
    {**EVENT, "workspaceId": ""},
    {**EVENT, "workspaceId": "a\nb"},
    {**EVENT, "payload": [1]},
    {**EVENT, "id": "x" * 201},
    {**EVENT, "source": "y" * 101},
    {**EVENT, "occurredAt": "yesterday"},
    {**EVENT, "context": {"automationId": "a"}},
    {**EVENT, "context": {**CONTEXT, "depth": 1001}},
    {**EVENT, "context": {**CONTEXT, "more": 1}},
    {**EVENT, "context": {**CONTEXT, "stamp": "soon"}},
    {**EVENT, "context": {"stamp": "1700000000000-0", "depth": 0}},
    {**MESSAGE, "payload": {"conversation": {}}},
    {**MESSAGE, "payload": {"conversation": {"id": ""}}},
    {**MESSAGE, "payload": {}},
]


def is_taken(event: dict[str, Any]) -> bool:
    fields = {
        name.encode(): value.encode() if isinstance(value, str) else orjson.dumps(value)
        for name, value in event.items()
    }
    try:
        events.decode_entry("1700000000000-0", fields)
    except BadEvent:
        return False
    return True


def test_the_schema_is_one_and_stands_in_the_page() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    (shown,) = PAGE.blocks("json")
    assert orjson.loads(shown.text) == SCHEMA


@pytest.mark.parametrize("event", GOOD)
def test_what_the_schema_allows_is_taken(event: dict[str, Any]) -> None:
    assert Draft202012Validator(SCHEMA).is_valid(event)
    assert is_taken(event)


@pytest.mark.parametrize("event", BAD)
def test_what_the_schema_refuses_is_refused(event: dict[str, Any]) -> None:
    assert not Draft202012Validator(SCHEMA).is_valid(event)
    assert not is_taken(event)


def test_the_table_has_the_fields_of_the_schema_and_their_limits() -> None:
    documented = {names(row[0])[0]: (row[1], row[3]) for row in PAGE.table("The entry")}
    assert documented.keys() == SCHEMA["properties"].keys()
    assert [name for name, (needed, _) in documented.items() if needed == "yes"] == SCHEMA["required"]
    longest = {
        "type": event_fields.MAX_TYPE,
        "workspaceId": event_fields.MAX_WORKSPACE,
        "id": event_fields.MAX_ID,
        "source": event_fields.MAX_SOURCE,
    }
    for name, limit in longest.items():
        assert documented[name][1] == f"{limit} characters"
        assert SCHEMA["properties"][name]["maxLength"] == limit


def test_the_limits_of_the_whole_are_told() -> None:
    for limit in (events.MAX_ENTRY_BYTES, json_limits.MAX_NODES, dead_stream.MAXLEN):
        assert f"{limit:,}" in PAGE.text
    assert f"at most {json_limits.MAX_DEPTH} levels" in PAGE.text


def test_every_type_that_feeds_a_trigger_is_listed() -> None:
    listed = {name for row in PAGE.table("Types") for name in names(row[0])}
    assert listed >= FED_BY.keys()
    fed = {kind for kinds in FED_BY.values() for kind in kinds}
    assert fed | {TriggerType.EVENT, TriggerType.SCHEDULE, TriggerType.MANUAL} == set(TriggerType)
