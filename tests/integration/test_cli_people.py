"""The commands on flags, members and the audit, run inside this process, on both databases."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from knockon.cli.app import make_app
from shared.model.flag_states import SEQUENTIAL_IDLE
from tests.people import opened_backends

Knockon = Callable[..., str]


@pytest.fixture
def knockon(database_url: str, redis_url: str) -> Iterator[Knockon]:
    servers = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "KNOCKON_WORKSPACE": "w1"}

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(make_app(), arguments, env=servers)
        assert result.exit_code == code, (result.output, result.exception)
        return result.output

    with opened_backends(database_url, redis_url):
        yield run


def document(knockon: Knockon, *arguments: str) -> Any:
    return orjson.loads(knockon(*arguments, "-o", "json"))


def test_flags_are_set_and_listed(knockon: Knockon) -> None:
    note = "nothing reads a flag of this name, so it changes nothing\n"
    assert knockon("flags", "set", "idle-steps", "on") == f"idle-steps is on (was never set)\n{note}"
    assert knockon("flags", "set", "idle-steps", "on") == f"idle-steps is on already\n{note}"
    assert knockon("flags", "set", "idle-steps", "off") == f"idle-steps is off (was on)\n{note}"
    listed = [(flag["name"], flag["state"]) for flag in document(knockon, "flags", "list")]
    assert listed == [(SEQUENTIAL_IDLE, None), ("idle-steps", "off")]
    assert "nothing reads" in knockon("flags", "list")
    assert "no workspace 'nope'" in knockon("flags", "list", "-w", "nope", code=1)
    knockon("flags", "set", "idle-steps", "maybe", code=2)
    assert "name" in knockon("flags", "set", "Idle", "on", code=1)


def test_a_flag_of_two_halves_is_set_for_all_or_for_one_workspace(knockon: Knockon) -> None:
    def told() -> tuple[str | None, str | None, str]:
        (flag,) = document(knockon, "flags", "list")
        return flag["state"], flag["installation"], flag["effective"]

    name = SEQUENTIAL_IDLE
    off = f"it is off for the whole installation; turn that on with: knockon flags set {name} on\n"
    said = knockon("flags", "set", name, "on", "--workspace", "w1")
    assert said == f"{name} is on (was never set)\n{off}"
    assert told() == ("on", None, "off")
    assert knockon("flags", "set", name, "on") == f"{name} is on for the whole installation (was never set)\n"
    assert told() == ("on", "on", "on")
    assert knockon("flags", "set", name, "off") == f"{name} is off for the whole installation (was on)\n{off}"
    assert told() == ("on", "off", "off")
    assert "no workspace ''" in knockon("flags", "set", name, "on", "--workspace", "", code=1)
    assert told() == ("on", "off", "off")


def test_members_are_added_moved_and_removed(knockon: Knockon) -> None:
    assert (
        knockon("members", "add", "Anna@example.org", "--role", "owner")
        == "anna@example.org is owner of w1\n"
    )
    knockon("members", "add", "bert@example.org", "--role", "viewer", "--name", "Bert")
    assert "was viewer" in knockon("members", "set", "bert@example.org", "--role", "author")
    members = document(knockon, "members", "list")
    assert [(each["email"], each["name"], each["role"]) for each in members] == [
        ("anna@example.org", "anna@example.org", "owner"),
        ("bert@example.org", "Bert", "author"),
    ]
    assert "last owner" in knockon("members", "remove", "anna@example.org", code=1)
    assert knockon("members", "remove", "bert@example.org") == "removed\n"
    knockon("members", "add", "bert@example.org", code=2)
    assert "mail address" in knockon("members", "add", "bert", "--role", "viewer", code=1)


def test_the_audit_is_listed_by_thing_and_time(knockon: Knockon) -> None:
    knockon("flags", "set", "a", "on")
    knockon("flags", "set", "b", "on")
    knockon("members", "add", "anna@example.org", "--role", "owner")
    everything = document(knockon, "audit", "list")
    assert [entry["action"] for entry in everything] == ["member.added", "flag.set", "flag.set"]
    told = knockon("audit", "list", "--resource", "flags", code=2)
    assert ("--resource" in told, "automation_run" in told) == (True, True)
    (entry,) = document(knockon, "audit", "list", "--resource", "flag:a")
    assert (entry["resource_id"], entry["detail"]) == ("a", {"before": None, "after": {"state": "on"}})
    assert len(document(knockon, "audit", "list", "--since", "1h", "--resource", "flag")) == 2
    assert "flag:b" in knockon("audit", "list", "-n", "2")
