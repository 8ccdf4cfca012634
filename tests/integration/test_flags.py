"""Flags: on, off, or as their reader wants them."""

from collections.abc import Iterator

import pytest

from shared.db.audit_reads import AuditQuery, list_audit
from shared.db.flags import Flag, is_flag_on, list_flags
from shared.errors import ConfigError, NotFound
from shared.model.flag_states import FlagState
from shared.services.backends import Backends, Caller
from shared.services.flags import ListedFlag, listed_flags, set_flag
from tests.people import CALLER, NOW, opened_backends


@pytest.fixture
def opened(database_url: str, redis_url: str) -> Iterator[Backends]:
    with opened_backends(database_url, redis_url) as backends:
        yield backends


def put(opened: Backends, name: str, state: FlagState, caller: Caller = CALLER) -> FlagState | None:
    return set_flag(opened.database, opened.clock, caller, (name, state)).before


def test_a_flag_says_what_was_set_and_its_readers_default_before_that(opened: Backends) -> None:
    def read(default: FlagState, workspace_id: str = "w1") -> bool:
        with opened.database.read() as conn:
            return is_flag_on(conn, workspace_id, "idle-steps", default)

    assert (read(FlagState.ON), read(FlagState.OFF)) == (True, False)
    assert put(opened, "idle-steps", FlagState.ON) is None
    assert read(FlagState.OFF)
    assert put(opened, "idle-steps", FlagState.OFF) is FlagState.ON
    assert not read(FlagState.ON)
    assert (read(FlagState.ON, "w2"), read(FlagState.OFF, "w2")) == (True, False)


def test_each_change_is_audited_and_what_changes_nothing_is_not(opened: Backends) -> None:
    for state in (FlagState.ON, FlagState.ON, FlagState.OFF):
        put(opened, "idle-steps", state)
    with opened.database.read() as conn:
        entries = list_audit(conn, AuditQuery("w1", 10))
        assert [(flag.name, flag.state) for flag in list_flags(conn, "w1")] == [("idle-steps", FlagState.OFF)]
    assert [(entry.action, entry.resource_id, entry.detail) for entry in entries] == [
        ("flag.set", "idle-steps", {"before": {"state": "on"}, "after": {"state": "off"}}),
        ("flag.set", "idle-steps", {"before": None, "after": {"state": "on"}}),
    ]


@pytest.mark.parametrize("name", ["", "Idle", "1st", "-a", "a b", "a" * 101])
def test_a_name_that_no_flag_has_is_refused(opened: Backends, name: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        put(opened, name, FlagState.ON)


def test_a_workspace_must_be_there(opened: Backends) -> None:
    with pytest.raises(NotFound):
        put(opened, "a", FlagState.ON, Caller("nowhere", "USER cli:anna"))


def test_flags_that_something_reads_are_listed_beside_those_that_were_set() -> None:
    flags = [Flag("b", FlagState.ON, NOW), Flag("odd", FlagState.OFF, NOW)]
    assert listed_flags(flags, {"a": "alphas", "b": "betas"}) == [
        ListedFlag("a", None, "alphas", None),
        ListedFlag("b", FlagState.ON, "betas", NOW),
        ListedFlag("odd", FlagState.OFF, None, NOW),
    ]
