"""The tables of actions in the documentation are what the models of the actions say."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pytest

from executors.registry import EXECUTORS
from shared.model.actions import ACTION_CONFIGS, ActionConfig
from tests.pages import page

TYPES = {"string": "text", "boolean": "boolean", "object": "object", "array": "list", "integer": "integer"}
# What happens without a key whose default is null: the models leave that to the executor.
LEFT_OUT = {
    ("SEND_WEBHOOK", "body"): "the flattened event",
    ("SEND_WEBHOOK", "secret"): "`WEBHOOK_SECRET`",
    ("UPDATE_RECORD", "record_id"): "the event's `recordId`",
    ("UPDATE_RECORD", "subject"): "a record",
    ("CREATE_RECORD", "record_id"): "made from run and position",
}

Row = tuple[str, str, str, str]


@pytest.mark.parametrize("name", ACTION_CONFIGS)
def test_each_action_has_its_keys_in_the_documentation(name: str) -> None:
    documented = {row[:4] for row in page("automations.md").table(name)}
    assert documented == set(rows_of(name, ACTION_CONFIGS[name]))


def test_every_action_that_can_be_written_is_carried_out_and_has_a_section() -> None:
    headings = page("automations.md").headings()
    sections = [heading for heading in headings if heading.isupper()]
    assert set(sections) == set(ACTION_CONFIGS) == set(EXECUTORS)


def rows_of(name: str, model: type[ActionConfig]) -> Iterator[Row]:
    schema = model.model_json_schema()
    for key, told in schema["properties"].items():
        default = default_text(name, key, told, schema)
        rendered = "no" if key in model.template_free else "yes"
        plain = resolved(told, schema)
        yield f"`{key}`", type_text(plain, schema), default, rendered
        for inner, inner_told in plain.get("properties", {}).items():
            assert inner in plain["required"]
            yield f"`{key}.{inner}`", type_text(inner_told, schema), "required", rendered


def default_text(name: str, key: str, told: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if key in schema.get("required", ()):
        return "required"
    if told.get("default") is None:
        return LEFT_OUT[name, key]
    return f"`{orjson.dumps(told['default']).decode()}`"


def type_text(told: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    plain = resolved(told, schema)
    if "enum" in plain:
        return ", ".join(f"`{each}`" for each in plain["enum"])
    if plain.get("type") == "array":
        return f"list of {type_text(plain['items'], schema)}"
    return TYPES[plain["type"]] if "type" in plain else "any JSON"


def resolved(told: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference, and leave null out of a choice."""
    for choice in told.get("anyOf", ()):
        if choice.get("type") != "null":
            return resolved(choice, schema)
    if "$ref" in told:
        found: Mapping[str, Any] = schema["$defs"][told["$ref"].rpartition("/")[2]]
        return found
    return told
