"""What the actions beside webhooks and records refuse when they are saved, and at which key."""

from typing import Any

import pytest

from shared.errors import DefinitionError
from shared.model.automation import Definition, definition_to_json, parse_definition
from shared.model.mail_config import read_address

MAIL = {"to": "ada@example.test", "subject": "s", "body": "b"}


def saved(type_: str, **config: Any) -> Definition:
    return parse_definition(
        {
            "key": "k",
            "name": "n",
            "trigger": {"type": "MANUAL"},
            "actions": [{"type": type_, "config": config}],
        }
    )


def refused(type_: str, **config: Any) -> list[str]:
    """Give the paths of all faults, below the config."""
    with pytest.raises(DefinitionError) as caught:
        saved(type_, **config)
    return [fault.path.removeprefix("actions[0].config").lstrip(".") for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("type_", "config", "at"),
    [
        ("CREATE_PAGE", {}, "title"),
        ("CREATE_PAGE", {"title": " \n"}, "title"),
        ("CREATE_PAGE", {"title": "t", "page_id": ""}, "page_id"),
        ("CREATE_PAGE", {"title": "t", "parent_id": None}, "parent_id"),
        ("CREATE_PAGE", {"title": "t", "properties": []}, "properties"),
        ("CREATE_PAGE", {"title": "t", "parent": "p"}, "parent"),
        ("ADD_COMMENT", {"body": ""}, "body"),
        ("ADD_COMMENT", {"body": "b", "author": ""}, "author"),
        ("ADD_COMMENT", {"body": "b", "record_id": "r", "subject": {"type": "x", "id": "1"}}, ""),
        ("ADD_COMMENT", {"body": "b", "subject": {"type": "X", "id": "1"}}, "subject.type"),
        ("ADD_LABEL", {}, "labels"),
        ("ADD_LABEL", {"labels": []}, "labels"),
        ("ADD_LABEL", {"labels": "vip"}, "labels"),
        ("ADD_LABEL", {"labels": ["a", " "]}, "labels[1]"),
        ("REMOVE_LABEL", {"labels": ["x"] * 51}, "labels"),
        ("REMOVE_LABEL", {"labels": ["x" * 201]}, "labels[0]"),
        ("SEND_MESSAGE", {"content": "\t"}, "content"),
        ("SEND_MESSAGE", {"content": "c", "private": "yes"}, "private"),
        ("SEND_MESSAGE", {"content": "c", "conversation_id": None}, "conversation_id"),
        ("ASSIGN", {}, ""),
        ("ASSIGN", {"message": "m"}, ""),
        ("ASSIGN", {"assignee_id": ""}, "assignee_id"),
        ("ASSIGN", {"team_id": "t", "message": None}, "message"),
        ("SET_STATUS", {"status": "closed"}, "status"),
        ("SET_STATUS", {"status": None}, "status"),
        ("SNOOZE", {}, ""),
        ("SNOOZE", {"until": "2030-01-01T00:00:00Z", "minutes": 5}, ""),
        ("SNOOZE", {"until": "2030-01-01"}, "until"),
        ("SNOOZE", {"minutes": 0}, "minutes"),
        ("SNOOZE", {"minutes": 525_601}, "minutes"),
        ("SNOOZE", {"minutes": "5"}, "minutes"),
        ("RESOLVE", {"message": " "}, "message"),
        ("SEND_EMAIL", {**MAIL, "to": []}, "to"),
        ("SEND_EMAIL", {**MAIL, "to": ["a@b.test"] * 51}, "to"),
        ("SEND_EMAIL", {**MAIL, "to": ["a@b.test", "b"]}, "to[1]"),
        ("SEND_EMAIL", {**MAIL, "to": {"a": 1}}, "to"),
        ("SEND_EMAIL", {**MAIL, "cc": ""}, "cc"),
        ("SEND_EMAIL", {**MAIL, "subject": "a\nb"}, "subject"),
        ("SEND_EMAIL", {**MAIL, "subject": "x" * 999}, "subject"),
        ("SEND_EMAIL", {**MAIL, "html": None}, "html"),
        ("SEND_EMAIL", {**MAIL, "html": "{{ x"}, "html"),
        ("ASK_AI", {}, "prompt"),
        ("ASK_AI", {"prompt": " "}, "prompt"),
        ("ASK_AI", {"prompt": "x" * 200_001}, "prompt"),
        ("ASK_AI", {"prompt": "p", "max_tokens": 0}, "max_tokens"),
        ("ASK_AI", {"prompt": "p", "max_tokens": 32_769}, "max_tokens"),
        ("ASK_AI", {"prompt": "p", "temperature": 2.1}, "temperature"),
        ("ASK_AI", {"prompt": "p", "temperature": -1}, "temperature"),
        ("ASK_AI", {"prompt": "p", "json": "true"}, "json"),
        ("ASK_AI", {"prompt": "p", "wants_json": True}, "wants_json"),
        ("ASK_AI", {"prompt": "p", "model": ""}, "model"),
    ],
)
def test_a_bad_config_is_refused_at_its_key(type_: str, config: dict[str, Any], at: str) -> None:
    found = refused(type_, **config)
    assert {path.split("[function")[0].split(".constrained")[0] for path in found} == {at}


@pytest.mark.parametrize(
    ("type_", "config"),
    [
        ("CREATE_PAGE", {"title": "{{ t }}", "content": None, "page_id": 7}),
        ("ADD_COMMENT", {"body": "{{ b }}", "subject": {"type": "{{ t }}", "id": "{{ i }}"}}),
        ("ADD_LABEL", {"labels": ["{{ a }}", "b"], "conversation_id": "{{ c }}"}),
        ("ASSIGN", {"assignee_id": None, "team_id": "{{ t }}"}),
        ("SET_STATUS", {"status": "{{ s }}"}),
        ("SNOOZE", {"until": "{{ u }}"}),
        ("SEND_EMAIL", {**MAIL, "to": "{{ all }}", "cc": ["{{ a }}", "Ada <ada@example.test>"]}),
        ("ASK_AI", {"prompt": "p", "json": True, "temperature": 1}),
    ],
)
def test_templates_may_stand_where_values_are_checked_later(type_: str, config: dict[str, Any]) -> None:
    written = definition_to_json(saved(type_, **config))
    assert definition_to_json(parse_definition(written)) == written
    assert written["actions"][0]["config"].keys() == config.keys()


@pytest.mark.parametrize(
    ("text", "name", "spec"),
    [
        ("ada@example.test", "", "ada@example.test"),
        (" Ada <ada@example.test> ", "Ada", "ada@example.test"),
        ('"Ada, B" <ada@example.test>', "Ada, B", "ada@example.test"),
        ("bob@bücher.example", "", "bob@xn--bcher-kva.example"),
        ("robot@localhost", "", "robot@localhost"),
    ],
)
def test_one_address_is_read(text: str, name: str, spec: str) -> None:
    address = read_address(text)
    assert (address.display_name, address.addr_spec) == (name, spec)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ada",
        "@example.test",
        "ada@",
        "a@b.test, c@d.test",
        "a@b.test c@d.test",
        "<a@b.test> <c@d.test>",
        "a@b.test\r\nBcc: c@d.test",
        "Ada\n <a@b.test>",
        "a\x00@b.test",
        "é@b.test",
        "a>b@b.test",
        "a@b.test SIZE=1",
        "a@b@c.test",
        "a@b..test",
        "a@" + "b" * 400,
        "a@\ud800.test",
    ],
)
def test_what_is_no_single_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        read_address(text)
