"""Automations in YAML files: what a file may look like, how its values read, and where its faults are."""

import json

import pytest

from shared.errors import DefinitionError
from shared.model.actions import CreateNotification, SendWebhook
from shared.model.automation import definition_to_json, load_yaml, parse_definition
from shared.model.triggers import TriggerType

EXAMPLE = """
- key: stale-pending
  name: Label conversations stuck in Pending
  status: ACTIVE
  trigger: {type: CONVERSATION_UPDATED}
  conditions:
    all: [{field: conversation.status, op: eq, value: pending}]
  execution_delay: 240
  actions:
    - {type: CREATE_NOTIFICATION, config: {title: stale}}
    - type: SEND_WEBHOOK
      config: {url: "https://example.test/h", body: {id: "{{ conversation.id }}"}}
      retries: 3
      timeout_ms: 5000
"""


def yaml_faults(text: str) -> dict[str, str]:
    """Give the faults of a file that is refused, by path."""
    with pytest.raises(DefinitionError) as caught:
        load_yaml(text)
    return {fault.path: fault.message for fault in caught.value.faults}


def test_the_documented_example_is_read_and_written_back() -> None:
    [definition] = load_yaml(EXAMPLE)
    assert definition.trigger.type is TriggerType.CONVERSATION_UPDATED
    assert definition.execution_delay == 240
    first, second = definition.actions
    assert isinstance(first.config, CreateNotification)
    assert isinstance(second.config, SendWebhook)
    assert (second.retries, second.timeout_ms) == (3, 5000)
    assert parse_definition(definition_to_json(definition)) == definition


def test_yaml_values_are_those_of_json() -> None:
    head = "{key: no, name: on, trigger: {type: MANUAL}, actions: [{type: EMIT_EVENT, config: "
    payload = (
        "{a: yes, b: 2026-01-01, c: 12:30, d: 007, e: 1_000, f: true, g: ~, h: -1.5, i: 1e3, j: , 0x1F: .inf}"
    )
    [definition] = load_yaml(f"{head}{{event_type: a.b, payload: {payload}}}}}]}}")
    assert (definition.key, definition.name) == ("no", "on")
    assert definition_to_json(definition)["actions"][0]["config"]["payload"] == {
        "a": "yes",
        "b": "2026-01-01",
        "c": "12:30",
        "d": "007",
        "e": "1_000",
        "f": True,
        "g": None,
        "h": -1.5,
        "i": 1000.0,
        "j": None,
        "0x1F": ".inf",
    }


ONE = "key: a\nname: A\ntrigger: {type: MANUAL}\nactions: [{type: CREATE_NOTIFICATION, config: {title: x}}]\n"
AS_ITEM = "- " + ONE.replace("\n", "\n  ").rstrip() + "\n"


def test_a_file_holds_one_automation_or_a_list_or_a_named_list() -> None:
    for text in (ONE, AS_ITEM, f"automations:\n{AS_ITEM}"):
        assert [definition.key for definition in load_yaml(text)] == ["a"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", "the whole file"),
        ("[]", "the whole file"),
        ("automations: []", "automations"),
        ("automations: {}", "automations"),
        ("hello", "the whole file"),
        (f"{ONE}name: B\n", "line 5"),
        (f"{ONE}trigger: [\n", "line 6"),
        (f"{ONE}---\n{ONE}", "line 5"),
        ("? [a]\n: b", "line 1"),
        ("a: !!python/object:os.system {}", "line 1"),
        ("a: \x00", "the whole file"),
        ("[" * 5000, "the whole file"),
        ("a: " + "9" * 5000, "the whole file"),
        (f"automations:\n{AS_ITEM}version: 1\n", "version"),
        (AS_ITEM + AS_ITEM, "[1].key"),
        (f"automations:\n{AS_ITEM}{AS_ITEM}", "automations[1].key"),
        (AS_ITEM + AS_ITEM.replace("MANUAL", "MANUEL"), "[1].trigger.type"),
        (ONE.replace("title: x", "title: x, 5: y"), "actions[0].config"),
        (ONE.replace("name: A", "name: &a [*a]"), "name" + "[0]" * 31),
    ],
    ids=lambda text: text[:20],
)
def test_a_bad_file_is_refused_with_the_place(text: str, path: str) -> None:
    assert list(yaml_faults(text)) == [path]


def test_aliases_that_multiply_are_refused_in_bounded_time() -> None:
    layers = [f"  - &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 20)]
    bomb = "\n".join(["conditions:", "  - &l0 [x]", *layers])
    assert yaml_faults(f"{ONE}{bomb}\n") == {
        "the whole file": "holds more than 10000 values; what an alias repeats counts each time"
    }
    below = bomb.replace("\n", "\n  ")
    assert list(yaml_faults(f"{AS_ITEM}  {below}\n")) == ["[0]"]


def test_all_automations_of_a_file_are_looked_at() -> None:
    text = AS_ITEM.replace("MANUAL", "X") + AS_ITEM + AS_ITEM.replace("name: A", "nam: A")
    assert set(yaml_faults(text)) == {"[0].trigger.type", "[2].name", "[2].nam"}


CALL = "url: 'https://u:p@h.test/?a=1', headers: {A: b}, secret: null"
HOOK = f"actions: [{{type: SEND_WEBHOOK, config: {{{CALL}}}}}]\n"


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("u:p", "***", "actions[0].config.url"),
        ("u:p", "u:***", "actions[0].config.url"),
        ("a=1", "a=***", "actions[0].config.url"),
        ("{A: b}", "{A: '***'}", "actions[0].config.headers.A"),
        ("secret: null", "secret: '***'", "actions[0].config.secret"),
        ("secret: null", "body: {deep: [{pwd: '***'}]}", "actions[0].config.body.deep[0].pwd"),
    ],
)
def test_what_was_masked_for_showing_is_not_taken_for_the_value(old: str, new: str, path: str) -> None:
    head = ONE[: ONE.index("actions:")]
    text = head + HOOK.replace(old, new).replace(", secret: null", "")
    assert yaml_faults(text)[path].startswith("is masked; give the value itself")
    assert list(yaml_faults(text)) == [path]


def test_stars_inside_a_text_are_taken() -> None:
    assert load_yaml(ONE.replace("title: x", "title: '*** News ***'"))


def test_a_character_that_json_wrote_as_two_escapes_is_one() -> None:
    """`json.dumps` writes what lies beyond the first plane as the two halves of a surrogate pair."""
    written = {
        "key": "k",
        "name": "Party \U0001f389\U0001f600 \u00e9",
        "trigger": {"type": "MANUAL"},
        "actions": [{"type": "EMIT_EVENT", "config": {"event_type": "a.b", "payload": {"\U0001f600": 1}}}],
    }
    text = json.dumps(written)
    assert r"\ud83d\ude00" in text
    [definition] = load_yaml(text)
    assert definition_to_json(definition) == written


@pytest.mark.parametrize("half", [r"\ud83d", r"\ude00\ud83d", r"\ud83d \ude00"])
def test_half_of_a_pair_is_still_refused(half: str) -> None:
    text = EXAMPLE.replace("Label conversations stuck in Pending", f'"x {half}"')
    assert "half of a surrogate pair" in " ".join(yaml_faults(text).values())
