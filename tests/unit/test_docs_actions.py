"""The tables of actions in the documentation are what the models of the actions say."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pytest

from executors.registry import EXECUTORS
from shared.model.actions import ACTION_CONFIGS, ActionConfig
from shared.model.automation import load_yaml
from tests.pages import page

TYPES = {
    "string": "text",
    "boolean": "boolean",
    "object": "object",
    "array": "list",
    "integer": "integer",
    "number": "number",
}
# What happens without a key whose default is null: the models leave that to the executor.
LEFT_OUT = {
    ("SEND_WEBHOOK", "body"): "the flattened event",
    ("SEND_WEBHOOK", "secret"): "`WEBHOOK_SECRET`",
    ("UPDATE_RECORD", "record_id"): "the event's `recordId`",
    ("UPDATE_RECORD", "subject"): "a record",
    ("CREATE_RECORD", "record_id"): "made from run and position",
    ("CREATE_PAGE", "page_id"): "made from run and position",
    ("ADD_COMMENT", "record_id"): "what the event is about",
    ("ADD_COMMENT", "subject"): "what the event is about",
    ("ADD_COMMENT", "author"): "the automation's name",
    ("ASSIGN", "assignee_id"): "stays as it is",
    ("ASSIGN", "team_id"): "stays as it is",
    ("SNOOZE", "until"): "give `minutes`",
    ("SNOOZE", "minutes"): "give `until`",
    ("ASK_AI", "model"): "`AI_MODEL`",
    ("ASK_AI", "temperature"): "the service's own",
}
PAGE = page("actions.md")

Row = tuple[str, str, str, str]


@pytest.mark.parametrize("name", ACTION_CONFIGS)
def test_each_action_has_its_keys_in_the_documentation(name: str) -> None:
    documented = {row[:4] for row in PAGE.table(name)}
    assert documented == set(rows_of(name, ACTION_CONFIGS[name]))


def test_every_action_that_can_be_written_is_carried_out_and_has_a_section() -> None:
    sections = [heading for heading in PAGE.headings() if heading.isupper()]
    assert set(sections) == set(ACTION_CONFIGS) == set(EXECUTORS)


def test_the_examples_are_taken() -> None:
    examples = [block for block in PAGE.blocks("yaml") if block.section.isupper()]
    head = "key: k\nname: n\ntrigger: {type: CONVERSATION_UPDATED}\nactions:\n"
    taken = [load_yaml(head + block.text)[0].actions[0].type for block in examples]
    assert taken == [block.section for block in examples]
    assert len(set(taken)) >= 9


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
        if key == "conversation_id":
            return "the event's conversation"
        return LEFT_OUT.get((name, key), "none")
    return f"`{orjson.dumps(told['default']).decode()}`"


def type_text(told: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    plain = resolved(told, schema)
    if "anyOf" in plain:
        choices = [choice for choice in plain["anyOf"] if choice.get("type") != "null"]
        kinds = dict.fromkeys(type_text(choice, schema) for choice in choices)
        return " or ".join(kind for kind in kinds if kind != "integer" or "number" not in kinds)
    if "enum" in plain:
        return ", ".join(f"`{each}`" for each in plain["enum"])
    if plain.get("type") == "array":
        return f"list of {type_text(plain['items'], schema)}"
    return TYPES[plain["type"]] if "type" in plain else "any JSON"


def resolved(told: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference, and leave null out of a choice between it and one thing."""
    choices = [choice for choice in told.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        return resolved(choices[0], schema)
    if "$ref" in told:
        found: Mapping[str, Any] = schema["$defs"][told["$ref"].rpartition("/")[2]]
        return found
    return told
