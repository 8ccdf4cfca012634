"""Secrets in templates: known by name when they are saved, and refused where they would be recorded."""

from typing import Any

import pytest

from shared.errors import DefinitionError
from shared.hiding import Hider
from shared.model.automation import parse_definition
from shared.rules.secret_names import ENCODING, TRIMMING, check_secrets, secret_names
from shared.rules.templates import render_text

HOOK = "https://example.test/"


def refused(actions: list[dict[str, Any]], **given: Any) -> list[tuple[str, str]]:
    trigger = {"type": "EVENT", "config": {"eventType": "order.placed"}}
    raw = {"key": "k", "name": "n", "trigger": trigger, "actions": actions, **given}
    try:
        parse_definition(raw)
    except DefinitionError as error:
        return [(fault.path, fault.message) for fault in error.faults]
    return []


def test_names_are_found_wherever_a_template_may_need_them() -> None:
    texts = [
        "Bearer {{ secrets.K1 }}",
        "{% if total > 5 %}{{ secrets['k_2'] | upcase }}{% else %}{{ x | append: secrets.k3 }}{% endif %}",
        "{% assign y = secrets.k4 %}{% for z in items %}{{ secrets.K1 }}{% endfor %}",
        "secrets.k5 in plain text, {{ payload.secrets.k6 }}",
    ]
    assert secret_names(texts) == ("K1", "k3", "k4", "k_2")


@pytest.mark.parametrize(
    "text",
    [
        "{{ secrets }}",
        "{{ secrets | json }}",
        "{{ secrets[name] }}",
        "{{ secrets.a.b }}",
        "{{ secrets[0] }}",
        "{{ secrets.first-name }}",
        "{% assign all = secrets %}{{ all.k }}",
        "{% for pair in secrets %}{{ pair }}{% endfor %}",
        "{{ secrets.k1 }}{{ [x].k1 }}",
    ],
)
def test_secrets_are_asked_for_by_a_written_name_only(text: str) -> None:
    assert check_secrets(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "{{ secrets.k1 | upcase }}",
        "{{ secrets.k1 | strip | slice: 0, 3 }}",
        "{{ secrets.k1 | reverse }}",
        "{{ secrets.k1 | split: '' | join: '-' }}",
        "{{ secrets.k1 | default: 'x' }}",
        "{{ secrets.k1 | base64_encode | base64_encode }}",
        "{{ secrets.k1 | json | url_encode }}",
        "{{ x | append: secrets.k1 | upcase }}",
        "{{ 'x' | append: secrets.k1 }}",
        "{{ secrets.k1 | strip: secrets.k2 }}",
        "{{ payload[secrets.k1] }}",
        "{% assign x = secrets.k1 %}{{ x | upcase }}",
        "{% capture x %}{{ secrets.k1 }}{% endcapture %}{{ x | upcase }}",
        "{% capture x %}{% if y %}{{ secrets.k1 }}{% endif %}{% endcapture %}{{ x }}",
        "{% for x in secrets.k1 %}{{ x }}{% endfor %}",
        "{% if secrets.k1 contains 'a' %}a{% endif %}",
        "{% case secrets.k1 %}{% when 'a' %}a{% endcase %}",
        "{% case x %}{% when secrets.k1 %}a{% endcase %}",
        "{% for x in (1..secrets.k1) %}{{ x }}{% endfor %}",
    ],
)
def test_nothing_is_made_of_a_secret_that_would_not_be_masked(text: str) -> None:
    said = check_secrets(text)
    assert said is not None
    assert "secrets.k1" in said or "secrets.k2" in said
    config = {"url": HOOK, "body": {"a": ["x", text]}}
    ((where, _),) = refused([{"type": "SEND_WEBHOOK", "config": config}])
    assert where == "actions[0].config.body.a[1]"


@pytest.mark.parametrize(
    "chain", [*sorted(ENCODING), *sorted(TRIMMING), "strip | json", "url_encode | rstrip"]
)
def test_what_may_be_made_of_a_secret_is_masked(chain: str) -> None:
    value = "  p\"s'w<d>\\ é&ä/1\n"
    text = f"{{% if true %}}{{{{ secrets.k1 | {chain} }}}}{{% endif %}}"
    assert check_secrets(text) is None
    made = render_text(text, {"secrets": {"k1": value}}).text
    shown = Hider([value]).text(f"a{made}z")
    assert shown.replace('"', "").split() in (
        ["a***z"],
        ["a", "***z"],
        ["a***", "z"],
        ["a***=z"],
        ["a***==z"],
    )
    assert value.strip() not in shown


def test_a_webhook_may_ask_in_each_of_its_texts() -> None:
    config = {
        "url": "https://u:{{ secrets.pw }}@example.test/{{ secrets.path }}",
        "headers": {"Authorization": "Bearer {{ secrets.k1 }}"},
        "body": {"token": "{{ secrets.k1 }}"},
        "secret": "{{ secrets.signing }}",
    }
    assert refused([{"type": "SEND_WEBHOOK", "config": config}]) == []


@pytest.mark.parametrize(
    ("type_", "config", "path"),
    [
        ("CREATE_NOTIFICATION", {"title": "{{ secrets.k1 }}"}, "title"),
        ("EMIT_EVENT", {"event_type": "a.b", "payload": {"a": ["{{ secrets.k1 }}"]}}, "payload.a[0]"),
        ("UPDATE_RECORD", {"properties": {"a": "x{{ secrets.k1 | upcase }}"}}, "properties.a"),
        ("SEND_EMAIL", {"to": "a@b.test", "subject": "s", "body": "{{ secrets.k1 }}"}, "body"),
        ("ASK_AI", {"prompt": "{{ secrets.k1 }}"}, "prompt"),
    ],
)
def test_no_other_action_may_ask(type_: str, config: dict[str, Any], path: str) -> None:
    ((where, why),) = refused([{"type": type_, "config": config}])
    assert where == f"actions[0].config.{path}"
    assert "SEND_WEBHOOK" in why


def test_conditions_may_not_ask() -> None:
    hook = {"type": "SEND_WEBHOOK", "config": {"url": HOOK}}
    leaves = [
        {"field": "a", "op": "eq", "value": "{{ secrets.k1 }}"},
        {"field": "a", "op": "in", "value": ["x", "{{ secrets.k1 }}"]},
    ]
    for leaf in leaves:
        ((where, why),) = refused([hook], conditions={"all": [leaf]})
        assert where.startswith("conditions.all[0].value")
        assert "record" in why


def test_a_key_of_the_event_is_still_there_under_its_payload() -> None:
    assert refused([{"type": "CREATE_NOTIFICATION", "config": {"title": "{{ payload.secrets.k }}"}}]) == []
