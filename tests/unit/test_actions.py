"""What each action type takes, and what it refuses when it is saved."""

from typing import Any

import pytest
from pydantic import ValidationError

from shared.model.actions import (
    ACTION_CONFIGS,
    ActionConfig,
    CreateNotification,
    CreateRecord,
    EmitEvent,
    SendWebhook,
    UpdateRecord,
)
from shared.model.roles import Role

URL = "https://example.test/h"


def webhook(**keys: Any) -> SendWebhook:
    """Make a webhook config of which a test names only what it is about."""
    return SendWebhook.model_validate({"url": URL, **keys})


def refused_at(model: type[ActionConfig], given: dict[str, Any]) -> str:
    """Give the path of the one fault that a config is refused for."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(given)
    [details] = caught.value.errors()
    return ".".join(map(str, details["loc"]))


def test_a_webhook_has_the_documented_defaults() -> None:
    config = webhook()
    assert (config.method, config.body, config.content_type, config.secret) == (
        "POST",
        None,
        "application/json",
        None,
    )
    assert config.renders_as_json()
    assert not config.is_local


def test_all_other_actions_change_only_our_own_tables() -> None:
    waiting = {name for name, model in ACTION_CONFIGS.items() if not model.is_local}
    assert waiting == {"SEND_WEBHOOK", "SEND_EMAIL", "ASK_AI"}


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "http://127.0.0.1:8080/x?y=1#z",
        "https://u:pw@h.example/x?api_key=1",
        "https://[::1]/",
        "{{ secrets.base_url }}/orders",
        "https://{{ host }}:{{ port }}/{{ path }}?a={% if b %}1{% endif %}",
        "https://example.test/{{ conversation.id | default: 'none at all' }}",
        "https://bücher.example/ä",
    ],
)
def test_a_url_may_hold_templates_anywhere(url: str) -> None:
    assert webhook(url=url).url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.test/h",
        "//example.test",
        "ftp://example.test",
        "gopher://example.test/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "https:///path",
        "https://:80/",
        "https://user@/",
        "https://h.example:99999/",
        "https://h.example:port/",
        "http://user@127.0.0.1@evil",
        "http://[example.com]/",
        "https://h.example/a b",
        "https://h.example/\r\nHost: x",
        "https://h.example\\@evil/",
        "ftp://{{ host }}/",
        "https://h.example/" + "x" * 2048,
    ],
)
def test_a_url_that_could_never_be_called_is_refused(url: str) -> None:
    assert refused_at(SendWebhook, {"url": url}) == "url"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "x\r\nBcc: all"},
        {"X-A": "a\x00b"},
        {"X-A": "a\tb"},
        {"X A": "b"},
        {"": "b"},
        {"X-Ä": "b"},
        {"Host": "h"},
        {"content-length": "1"},
        {"Transfer-Encoding": "chunked"},
        {"connection": "close"},
        {"Content-Type": "text/plain"},
        {"X-A": "1", "x-a": "2"},
        {f"X-{n}": "1" for n in range(65)},
        {"X-A": "é" * 4100},
        {"X-A": ["b"]},
    ],
)
def test_a_header_that_would_break_the_request_is_refused(headers: dict[str, Any]) -> None:
    assert refused_at(SendWebhook, {"url": URL, "headers": headers}).split(".")[0] == "headers"


def test_a_header_that_rendered_to_a_number_is_sent_as_its_text() -> None:
    assert webhook(headers={"X-Count": 3, "X-On": True}).headers == {"X-Count": "3", "X-On": "true"}


@pytest.mark.parametrize(
    ("content_type", "is_json"),
    [
        ("application/json", True),
        ("application/json; charset=utf-8", True),
        ("application/cloudevents+json", True),
        ("text/plain", False),
        ("application/x-www-form-urlencoded", False),
    ],
)
def test_the_content_type_decides_how_a_text_body_is_rendered(content_type: str, is_json: bool) -> None:
    assert webhook(content_type=content_type).renders_as_json() is is_json


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("content_type", "json"),
        ("content_type", "text/plain\r\nX: y"),
        ("method", "post"),
        ("method", "TRACE"),
        ("body", 5),
        ("body", True),
        ("secret", "not base64!"),
        ("secret", "whsec_"),
        ("secret", "AAAA BBBB CCCC"),
        ("secret", "AAAA not-base64!"),
        ("timeout", 5),
    ],
)
def test_a_bad_webhook_setting_is_refused_at_its_key(key: str, value: Any) -> None:
    assert refused_at(SendWebhook, {"url": URL, key: value}) == key


@pytest.mark.parametrize("body", [{"a": [None, 1, {"b": "{{ c }}"}]}, '{"n": {{ n }}}', ["{{ a }}"], {}, ""])
def test_a_body_is_kept_as_it_came(body: Any) -> None:
    assert webhook(body=body).body == body


def test_two_secrets_are_in_force_while_one_replaces_the_other() -> None:
    both = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
    assert webhook(secret=both).secret == both
    assert webhook(secret="{{ secrets.old }} {{ secrets.new }}").secret is not None


def test_a_secret_is_not_shown() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    assert secret not in repr(webhook(secret=secret))
    assert webhook(secret="{{ secrets.hook }}").secret == "{{ secrets.hook }}"


def test_a_notice_goes_to_owners_and_admins_by_default() -> None:
    assert CreateNotification(title="Stuck").roles == (Role.OWNER, Role.ADMIN)
    assert refused_at(CreateNotification, {"title": "x", "roles": []}) == "roles"
    assert refused_at(CreateNotification, {"title": "x", "roles": ["boss"]}) == "roles.0"


def test_a_title_that_rendered_to_another_type_becomes_its_text() -> None:
    rendered = CreateNotification.model_validate({"title": 12.5, "body": None})
    assert (rendered.title, rendered.body) == ("12.5", "")


def test_an_update_names_one_target_at_most() -> None:
    given = {"properties": {"status": "done"}, "record_id": "r1", "subject": {"type": "contact", "id": "c1"}}
    assert refused_at(UpdateRecord, given) == ""
    assert UpdateRecord(properties={"status": "done"}).record_id is None


@pytest.mark.parametrize("nothing", [None, ""])
@pytest.mark.parametrize("model", [UpdateRecord, CreateRecord])
def test_an_id_that_rendered_to_nothing_does_not_fall_back_to_the_default(
    model: type[ActionConfig], nothing: str | None
) -> None:
    given = {"properties": {"a": 1}, "record_id": nothing, "database_id": "d1"}
    if model is UpdateRecord:
        del given["database_id"]
    assert refused_at(model, given) == "record_id"


def test_a_config_dumps_only_what_was_given() -> None:
    given = {"properties": {"a": None}, "subject": {"type": "order", "id": "{{ subject.id }}"}}
    assert UpdateRecord.model_validate(given).model_dump(mode="json") == given


@pytest.mark.parametrize(
    "event_type",
    ["order", "Order.placed", "order.*", "order.", "{{ type }}.x", "automation.executed", "a." + "b" * 99],
)
def test_an_event_type_is_noun_dot_verb(event_type: str) -> None:
    assert refused_at(EmitEvent, {"event_type": event_type}) == "event_type"


@pytest.mark.parametrize("force", ["yes", 1, "true"])
def test_a_flag_is_true_or_false(force: Any) -> None:
    assert refused_at(UpdateRecord, {"properties": {"a": 1}, "force": force}) == "force"


def test_a_config_cannot_be_changed() -> None:
    config: Any = webhook()
    with pytest.raises(ValidationError):
        config.url = "https://other.test/"
