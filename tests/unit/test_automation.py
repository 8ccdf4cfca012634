"""The schema of an automation: what authors may write, and the path of everything that is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import DefinitionError
from shared.model.automation import (
    Definition,
    definition_to_json,
    parse_definition,
)
from shared.model.statuses import AutomationStatus
from shared.model.triggers import TriggerType

NOTICE: dict[str, Any] = {"type": "CREATE_NOTIFICATION", "config": {"title": "Stuck: {{ conversation.id }}"}}
HOOK: dict[str, Any] = {"type": "SEND_WEBHOOK", "config": {"url": "https://example.test/h"}}
NESTED: dict[str, Any] = {"field": "a", "op": "eq", "value": 1}
for _ in range(12):
    NESTED = {"not": NESTED}


def written(**keys: Any) -> dict[str, Any]:
    """Write a definition of which a test names only what it is about; None leaves a key out."""
    whole = {"key": "a1", "name": "A", "trigger": {"type": "RECORD_CREATED"}, "actions": [NOTICE], **keys}
    return {key: value for key, value in whole.items() if value is not None}


def faults(raw: Any) -> dict[str, str]:
    """Give the faults of a definition that is refused, by path."""
    with pytest.raises(DefinitionError) as caught:
        parse_definition(raw)
    return {fault.path: fault.message for fault in caught.value.faults}


def test_what_is_left_out_stays_out_and_has_its_default() -> None:
    definition = parse_definition(written())
    assert definition.status is AutomationStatus.ACTIVE
    assert (definition.conditions, definition.execution_delay, definition.scope_database_id) == (
        None,
        None,
        None,
    )
    assert definition_to_json(definition) == written()


def test_the_database_of_the_automation_wins_over_that_of_the_trigger() -> None:
    trigger = {"type": "RECORD_UPDATED", "config": {"databaseId": "d2"}}
    assert parse_definition(written(trigger=trigger)).scope_database_id == "d2"
    assert parse_definition(written(trigger=trigger, databaseId="d1")).scope_database_id == "d1"


@pytest.mark.parametrize(
    "trigger",
    [
        *({"type": name} for name in TriggerType if name not in {"PROPERTY_CHANGED", "EVENT", "SCHEDULE"}),
        {"type": "PROPERTY_CHANGED", "config": {"properties": ["status", "due"], "databaseId": "d1"}},
        {"type": "PROPERTY_CHANGED", "config": {"properties": ["*"]}},
        {"type": "EVENT", "config": {"eventType": "order.placed"}},
        {"type": "EVENT", "config": {"eventType": "order.*"}},
        {"type": "EVENT", "config": {"eventType": "ord*"}},
        {"type": "EVENT", "config": {"eventType": "*"}},
        {"type": "SCHEDULE", "config": {"cron": "0 9 * * 1-5"}},
        {"type": "SCHEDULE", "config": {"cron": "@daily", "timezone": "Europe/Paris"}},
    ],
    ids=str,
)
def test_every_trigger_type_takes_its_settings(trigger: dict[str, Any]) -> None:
    assert parse_definition(written(trigger=trigger)).trigger.type == trigger["type"]


@pytest.mark.parametrize(
    ("trigger", "path"),
    [
        ({"type": "CONVERSATION_UPDTED"}, "trigger.type"),
        ({}, "trigger.type"),
        ("RECORD_CREATED", "trigger"),
        ({"type": "RECORD_CREATED", "configs": {}}, "trigger.configs"),
        ({"type": "RECORD_CREATED", "config": {"database": "d1"}}, "trigger.config.database"),
        ({"type": "PROPERTY_CHANGED"}, "trigger.config.properties"),
        ({"type": "PROPERTY_CHANGED", "config": {"properties": []}}, "trigger.config.properties"),
        ({"type": "PROPERTY_CHANGED", "config": {"properties": ["a", ""]}}, "trigger.config.properties[1]"),
        ({"type": "RECORD_UPDATED", "config": {"properties": ["a"]}}, "trigger.config.properties"),
        ({"type": "PAGE_CREATED", "config": {"databaseId": "d1"}}, "trigger.config.databaseId"),
        ({"type": "EVENT"}, "trigger.config.eventType"),
        ({"type": "EVENT", "config": {"eventType": "Order Placed"}}, "trigger.config.eventType"),
        ({"type": "EVENT", "config": {"eventType": "*.placed"}}, "trigger.config.eventType"),
        ({"type": "EVENT", "config": {"eventType": "order.**"}}, "trigger.config.eventType"),
        ({"type": "SCHEDULE"}, "trigger.config.cron"),
        ({"type": "SCHEDULE", "config": {"cron": "*/30 * * * * *"}}, "trigger.config.cron"),
        ({"type": "SCHEDULE", "config": {"cron": "0 0 30 2 *"}}, "trigger.config.cron"),
        ({"type": "SCHEDULE", "config": {"cron": "@daily", "timezone": "CET"}}, "trigger.config.timezone"),
        ({"type": "MANUAL", "config": {"cron": "@daily"}}, "trigger.config.cron"),
    ],
    ids=str,
)
def test_a_bad_trigger_is_refused_at_its_path(trigger: Any, path: str) -> None:
    assert list(faults(written(trigger=trigger))) == [path]


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"key": None}, "key"),
        ({"key": "Upper"}, "key"),
        ({"key": "-a"}, "key"),
        ({"key": "a\n"}, "key"),
        ({"key": "a" * 101}, "key"),
        ({"key": 5}, "key"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"status": "active"}, "status"),
        ({"execution_delay": 0}, "execution_delay"),
        ({"execution_delay": 43_201}, "execution_delay"),
        ({"execution_delay": "5"}, "execution_delay"),
        ({"execution_delay": True}, "execution_delay"),
        ({"execution_delay": 5, "trigger": {"type": "MANUAL"}}, "execution_delay"),
        (
            {"execution_delay": 5, "trigger": {"type": "SCHEDULE", "config": {"cron": "@daily"}}},
            "execution_delay",
        ),
        ({"databaseId": "d1", "trigger": {"type": "PAGE_CREATED"}}, "databaseId"),
        ({"database_id": "d1"}, "database_id"),
        ({"condition": {}}, "condition"),
        ({"actions": []}, "actions"),
        ({"actions": None}, "actions"),
        ({"actions": [NOTICE] * 51}, "actions"),
        ({"actions": [NOTICE, "SEND_WEBHOOK"]}, "actions[1]"),
        ({"actions": [NOTICE, {**HOOK, "retry": 1}]}, "actions[1].retry"),
        ({"actions": [NOTICE, {**HOOK, "retries": 101}]}, "actions[1].retries"),
        ({"actions": [NOTICE, {**HOOK, "retries": "3"}]}, "actions[1].retries"),
        ({"actions": [NOTICE, {**HOOK, "timeout_ms": 0}]}, "actions[1].timeout_ms"),
        ({"actions": [NOTICE, {"type": "SEND_WEBHOOK"}]}, "actions[1].config"),
        ({"actions": [NOTICE, {**HOOK, "config": {"url": "ftp://x"}}]}, "actions[1].config.url"),
        ({"actions": [NOTICE, {**HOOK, "config": {}}]}, "actions[1].config.url"),
        ({"actions": [NOTICE, {**HOOK, "config": "https://x"}]}, "actions[1].config"),
        ({"actions": [NOTICE, {**HOOK, "type": "SEND_WEBHOK"}]}, "actions[1].type"),
        ({"actions": [NOTICE, {**HOOK, "config": {**HOOK["config"], "uri": "x"}}]}, "actions[1].config.uri"),
    ],
    ids=str,
)
def test_a_bad_key_is_refused_at_its_path(keys: dict[str, Any], path: str) -> None:
    assert list(faults(written(**keys))) == [path]


@pytest.mark.parametrize(
    ("conditions", "path"),
    [
        ({"all": []}, "conditions.all"),
        ({"all": [{"field": "a", "op": "equals", "value": 1}]}, "conditions.all[0].op"),
        (
            {"any": [{"field": "a", "op": "eq", "value": 1}, {"field": "a", "op": "in", "value": 1}]},
            "conditions.any[1].value",
        ),
        ({"not": {"field": "a", "op": "matches", "value": "(a"}}, "conditions.not.value"),
        ({"field": "a", "op": "eq", "value": "{{ a"}, "conditions.value"),
        ({"al": []}, "conditions.al"),
        ([], "conditions"),
    ],
    ids=str,
)
def test_a_bad_condition_is_refused_at_its_path(conditions: Any, path: str) -> None:
    assert path in faults(written(conditions=conditions))


def test_conditions_nested_too_deeply_are_refused() -> None:
    assert all(path.startswith("conditions.not") for path in faults(written(conditions=NESTED)))


@pytest.mark.parametrize("field", ["message", "message.content", "payload.message.direction"])
def test_a_message_is_read_only_where_there_is_one(field: str) -> None:
    leaf = {"field": field, "op": "is_not_empty"}
    tree = {"all": [{"any": [{"field": "a", "op": "changed"}, {"not": leaf}]}]}
    trigger = {"type": "CONVERSATION_UPDATED"}
    assert list(faults(written(trigger=trigger, conditions=tree))) == ["conditions.all[0].any[1].not.field"]
    assert list(faults(written(trigger=trigger, conditions=leaf))) == ["conditions.field"]
    parse_definition(written(trigger={"type": "MESSAGE_CREATED"}, conditions=tree))


def test_a_value_that_only_mentions_a_message_is_no_message_field() -> None:
    leaf = {"field": "messages.0", "op": "eq", "value": "message.content"}
    parse_definition(written(conditions=leaf))


def test_every_fault_is_told_at_once() -> None:
    raw = written(
        key="A",
        trigger={"type": "NEVER"},
        conditions={"any": []},
        actions=[
            {**HOOK, "retries": -1, "config": {"url": "x", "headers": {"Host": "h"}}},
            {"type": "X", "config": {}},
        ],
        extra=1,
    )
    assert set(faults(raw)) == {
        "key",
        "trigger.type",
        "conditions.any",
        "actions[0].retries",
        "actions[0].config.url",
        "actions[0].config.headers",
        "actions[1].type",
        "extra",
    }


@pytest.mark.parametrize(
    ("keys", "path", "word"),
    [
        ({"trigger": {"type": "CONVERSATION_UPDTED"}}, "trigger.type", "CONVERSATION_UPDATED"),
        ({"trigger": {"type": "record_created"}}, "trigger.type", "RECORD_CREATED"),
        ({"actions": [{**HOOK, "type": "SEND_WEBHOK"}]}, "actions[0].type", "SEND_WEBHOOK"),
        ({"conditions": {"field": "a", "op": "equal", "value": 1}}, "conditions.op", "eq"),
        ({"status": "PAUSE"}, "status", "PAUSED"),
        ({"actoins": []}, "actoins", "actions"),
        (
            {"trigger": {"type": "EVENT", "config": {"event_type": "a.b"}}},
            "trigger.config.event_type",
            "eventType",
        ),
        ({"actions": [{**HOOK, "timeout": 1}]}, "actions[0].timeout", "timeout_ms"),
        ({"actions": [{**HOOK, "config": {"ulr": "x"}}]}, "actions[0].config.ulr", "url"),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest_known_one(keys: Any, path: str, word: str) -> None:
    assert word in faults(written(**keys))[path]


@pytest.mark.parametrize(
    ("trigger", "told"),
    [
        ({"type": "MANUAL", "config": {"x": 1}}, "is unknown; this trigger takes no settings"),
        (
            {"type": "SCHEDULE", "config": {"x": 1, "cron": "@daily"}},
            "'x' is unknown; known are cron, timezone",
        ),
        ({"type": "EVENT", "config": {"x": 1, "eventType": "a.b"}}, "'x' is unknown; known are eventType"),
    ],
)
def test_an_unknown_setting_is_answered_with_those_of_its_trigger(trigger: Any, told: str) -> None:
    assert faults(written(trigger=trigger)) == {"trigger.config.x": told}


def test_an_unknown_setting_hides_no_other_fault() -> None:
    trigger = {"type": "SCHEDULE", "config": {"x": 1, "cron": "soon"}}
    assert set(faults(written(trigger=trigger))) == {"trigger.config.x", "trigger.config.cron"}


UPDATE: dict[str, Any] = {"type": "UPDATE_RECORD"}


@pytest.mark.parametrize(
    ("keys", "path", "told"),
    [
        ({"actions": {"a": 1}}, "actions", "must be a list"),
        ({"key": "A b"}, "key", "must be 1 to 100 of the characters a to z"),
        ({"key": "a\n"}, "key", "must be 1 to 100 of the characters a to z"),
        ({"name": " \u00a0"}, "name", "must not be blank"),
        ({"name": "a\u202eb"}, "name", "holds U+202E"),
        ({"name": 1}, "name", "must be text"),
        ({"conditions": [1]}, "conditions", "must be an object"),
        ({"executionDelay": 1, "execution_delay": 0}, "execution_delay", "must be at least 1"),
        ({"actions": [{**NOTICE, "retries": 1.5}]}, "actions[0].retries", "must be a whole number"),
        ({"actions": [{**NOTICE, "retries": 101}]}, "actions[0].retries", "must be at most 100"),
        (
            {"actions": [{**UPDATE, "config": {"properties": {}}}]},
            "actions[0].config.properties",
            "must not be empty",
        ),
        (
            {"actions": [{**UPDATE, "config": {"properties": {"a": 1}, "force": 1}}]},
            "actions[0].config.force",
            "must be true or false",
        ),
        (
            {
                "actions": [
                    {**UPDATE, "config": {"properties": {"a": 1}, "subject": {"type": "A", "id": "1"}}}
                ]
            },
            "actions[0].config.subject.type",
            "must be a to z",
        ),
        (
            {"actions": [{**HOOK, "config": {**HOOK["config"], "headers": 1}}]},
            "actions[0].config.headers",
            "must be an",
        ),
        (
            {"actions": [{**HOOK, "config": {**HOOK["config"], "body": "{ not json"}}]},
            "actions[0].config.body",
            "is no JSON",
        ),
        ({"conditions": {None: 1}}, "conditions", "has the key null"),
    ],
)
def test_a_fault_is_told_in_plain_words(keys: dict[str, Any], path: str, told: str) -> None:
    said = faults(written(**keys))[path]
    assert said.startswith(told)


@pytest.mark.parametrize(
    "more", [{}, {"body": "{{ a }} and more"}, {"body": "[1]"}, {"body": "a", "content_type": "text/plain"}]
)
def test_a_text_body_is_refused_only_where_it_can_never_be_json(more: dict[str, Any]) -> None:
    parse_definition(written(actions=[{**HOOK, "config": {**HOOK["config"], **more}}]))


def test_a_far_off_word_is_answered_with_the_known_ones() -> None:
    assert (
        "CREATE_NOTIFICATION, EMIT_EVENT"
        in faults(written(actions=[{"type": "?", "config": {}}]))["actions[0].type"]
    )


def test_faults_do_not_show_what_was_written() -> None:
    config = {"url": "ftp://u:tok-7Q@h/", "secret": "tok-7Q!", "headers": {"A": "tok-7Q\n"}}
    told = faults(written(actions=[{**HOOK, "config": config}]))
    assert len(told) == 3
    assert "tok-7Q" not in str(told)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), "conditions.value"),
        (2**63, "conditions.value"),
        ("a\x00b", "conditions.value"),
        ("\ud800", "conditions.value"),
        ({1: 2}, "conditions.value"),
        ({"a\x00": 2}, "conditions.value"),
        ({1, 2}, "conditions.value"),
        (b"x", "conditions.value"),
        ("x" * 262_144, ""),
        ([0] * 10_000, ""),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_no_store_can_hold_is_refused(value: Any, path: str) -> None:
    assert list(faults(written(conditions={"field": "a", "op": "eq", "value": value}))) == [path]


def test_a_tree_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert "nested" in str(faults(written(conditions={"field": "a", "op": "eq", "value": endless})))


@pytest.mark.parametrize("raw", [None, [], "x", 5])
def test_what_is_no_object_is_refused(raw: Any) -> None:
    assert faults(raw) == {"": "must be an object"}


JSON_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=15,
)
SOME_KEYS = st.sampled_from(
    ["key", "name", "status", "trigger", "conditions", "actions", "databaseId", "execution_delay", "x"]
)


@given(keys=st.dictionaries(SOME_KEYS, JSON_TREES, max_size=3))
def test_any_json_is_read_or_refused_with_faults(keys: dict[str, Any]) -> None:
    try:
        definition = parse_definition({**written(), **keys})
    except DefinitionError as error:
        told = error.faults
        assert told
    else:
        assert isinstance(definition, Definition)
