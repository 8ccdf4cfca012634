"""Flags: on, off, or as their reader wants them."""

from collections.abc import Iterator

import pytest

from shared.db.audit_reads import AuditQuery, list_audit
from shared.db.flags import is_flag_on, list_flags
from shared.errors import ConfigError, NotFound
from shared.model.flag_states import KNOWN_FLAGS, SEQUENTIAL_IDLE, FlagState
from shared.services.backends import Backends, Caller
from shared.services.flags import ListedFlag, list_known_flags, set_feature_flag, set_flag
from shared.services.idle_rules import is_sequential_idle_on
from tests.listening import capture_logs
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


def test_flags_that_something_reads_are_listed_beside_those_that_were_set(opened: Backends) -> None:
    put(opened, "odd", FlagState.OFF)
    with opened.database.read() as conn:
        flags = list_known_flags(conn, "w1")
    words = KNOWN_FLAGS[SEQUENTIAL_IDLE].turns_on
    assert flags == [
        ListedFlag(SEQUENTIAL_IDLE, None, None, FlagState.OFF, words, None),
        ListedFlag("odd", FlagState.OFF, None, FlagState.OFF, None, NOW),
    ]


@pytest.mark.parametrize("everywhere", FlagState)
@pytest.mark.parametrize("here", FlagState)
def test_a_flag_with_two_halves_is_on_where_both_say_so(
    opened: Backends, everywhere: FlagState, here: FlagState
) -> None:
    set_everywhere(opened, everywhere)
    put(opened, SEQUENTIAL_IDLE, here)
    with opened.database.read() as conn:
        (flag,) = list_known_flags(conn, "w1")
        is_on = is_sequential_idle_on(conn, "w1")
        assert not is_sequential_idle_on(conn, "w2")
    assert (flag.state, flag.installation) == (here, everywhere)
    assert is_on is (flag.effective is FlagState.ON) is (here is everywhere is FlagState.ON)


def test_a_change_for_the_whole_installation_is_told_where_it_changes_something(opened: Backends) -> None:
    nowhere = Caller("nowhere", "USER cli:anna")
    put(opened, SEQUENTIAL_IDLE, FlagState.ON, Caller("w2", "USER cli:anna"))
    with capture_logs() as lines:
        assert set_everywhere(opened, FlagState.ON) is None
        assert set_everywhere(opened, FlagState.ON) is FlagState.ON
        assert set_everywhere(opened, FlagState.OFF, nowhere) is FlagState.ON
    assert [(line["state"], line["before"]) for line in lines if line["event"] == "flag_set"] == [
        ("on", None),
        ("off", "on"),
    ]
    on = {"before": None, "after": {"state": "on"}, "half": "installation"}
    off = {"before": {"state": "on"}, "after": {"state": "off"}, "half": "installation"}
    with opened.database.read() as conn:
        assert [entry.detail for entry in list_audit(conn, AuditQuery("w1", 10))] == [on]
        assert [entry.detail for entry in list_audit(conn, AuditQuery("w2", 10))][:2] == [off, on]
        assert list_audit(conn, AuditQuery("nowhere", 10)) == []


def test_a_flag_without_a_half_for_the_whole_installation_has_none(opened: Backends) -> None:
    with pytest.raises(ConfigError, match="no half"):
        set_feature_flag(opened.database, opened.clock, CALLER, ("human-lock", FlagState.ON))


def set_everywhere(opened: Backends, state: FlagState, caller: Caller = CALLER) -> FlagState | None:
    return set_feature_flag(opened.database, opened.clock, caller, (SEQUENTIAL_IDLE, state)).before
