"""The rules of agents and channels as they are read: as one set, whatever is stored."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection

from shared.db.tables_idle import AI_AGENTS, CHANNELS, FEATURE_FLAGS
from shared.db.tables_people import FLAGS
from shared.model.flag_states import SEQUENTIAL_IDLE
from shared.model.idle_steps import IdleRuleKind
from shared.rules.idle_rules import IdleMode, RuleFound
from shared.services.backends import Backends
from shared.services.idle_rules import is_sequential_idle_on, read_rules
from tests.any_rows import add_row
from tests.people import NOW, opened_backends
from tests.statements import statements

AGENT, CHANNEL = IdleRuleKind.AGENT, IdleRuleKind.CHANNEL
STEP = {"action": "follow_up", "duration": 600, "message": "Still there?"}
LEGACY = {"action": "resolve", "resolve": {"duration": 60, "message": "Bye"}}
GLOBAL = {"enabled": True, **STEP}


@pytest.fixture
def opened(database_url: str, redis_url: str) -> Iterator[Backends]:
    with opened_backends(database_url, redis_url) as backends:
        yield backends


def add_agent(conn: Connection, id_: str, rule: Any, **given: Any) -> None:
    parameters = {"profile": {"idle_rule": rule}}
    values = {"workspace_id": "w1", "name": f"Agent {id_}", "parameters": parameters, "deleted_at": None}
    add_row(conn, AI_AGENTS, id=id_, **{**values, **given})


def add_channel(conn: Connection, id_: str, rule: Any, enabled: int = 1) -> None:
    settings = {"idle_rule": rule}
    add_row(
        conn, CHANNELS, workspace_id="w1", id=id_, name=f"Channel {id_}", enabled=enabled, settings=settings
    )


def turn_on(conn: Connection, workspace_id: str) -> None:
    add_row(conn, FLAGS, workspace_id=workspace_id, name=SEQUENTIAL_IDLE, enabled=1)


def test_each_rule_that_is_asked_for_is_answered(opened: Backends) -> None:
    def work(conn: Connection) -> None:
        add_agent(conn, "steps", {**LEGACY, "steps": [STEP, STEP]})
        add_agent(conn, "bad", {"steps": [{**STEP, "duration": 0}]})
        add_agent(conn, "gone", LEGACY, deleted_at=NOW)
        add_agent(conn, "steps", {"steps": [STEP]}, workspace_id="w2")
        add_channel(conn, "c", GLOBAL)
        add_channel(conn, "off", GLOBAL, enabled=0)
        add_channel(conn, "bad", {**GLOBAL, "message": ""})
        add_row(conn, FEATURE_FLAGS, name=SEQUENTIAL_IDLE, enabled=1)
        turn_on(conn, "w1")

    opened.database.transact(work)
    agents = [("w1", AGENT, id_) for id_ in ("steps", "bad", "gone", "c")]
    channels = [("w1", CHANNEL, id_) for id_ in ("c", "off", "bad", "steps")]
    with opened.database.read() as conn:
        found = read_rules(conn, [*agents, *channels, ("w2", AGENT, "steps")])
        with statements(conn) as executed:
            assert read_rules(conn, []) == {}
    nobody = RuleFound(None, "", is_there=False, malformed=None)
    shown = {ask: (rule.plan.mode if rule.plan else None, rule.malformed) for ask, rule in found.items()}
    assert shown == {
        ("w1", AGENT, "steps"): (IdleMode.STEPS, None),
        ("w1", AGENT, "bad"): (None, "steps[0].duration must be a whole number between 1 and 86400 seconds"),
        ("w1", AGENT, "gone"): (None, None),
        ("w1", AGENT, "c"): (None, None),
        ("w1", CHANNEL, "c"): (IdleMode.CHANNEL, None),
        ("w1", CHANNEL, "off"): (None, None),
        ("w1", CHANNEL, "bad"): (None, "message is required for action follow_up"),
        ("w1", CHANNEL, "steps"): (None, None),
        ("w2", AGENT, "steps"): (None, None),
    }
    assert found["w1", AGENT, "gone"] == found["w1", AGENT, "c"] == found["w1", CHANNEL, "steps"] == nobody
    assert (found["w1", CHANNEL, "off"].name, found["w1", CHANNEL, "off"].is_there) == ("Channel off", True)
    assert executed == []


@pytest.mark.parametrize("stored", [5, True, [1], [], "x", "5", ""], ids=repr)
@pytest.mark.parametrize("flag", [0, 1])
def test_what_is_no_object_is_a_malformed_rule(opened: Backends, stored: Any, flag: int) -> None:
    def work(conn: Connection) -> None:
        add_row(conn, AI_AGENTS, workspace_id="w1", id="a", name="A", parameters=stored, deleted_at=None)
        add_row(conn, CHANNELS, workspace_id="w1", id="c", name="C", enabled=1, settings=stored)
        add_row(conn, FEATURE_FLAGS, name=SEQUENTIAL_IDLE, enabled=flag)
        add_agent(conn, "good", LEGACY)
        turn_on(conn, "w1")

    opened.database.transact(work)
    asks = [("w1", AGENT, "a"), ("w1", CHANNEL, "c"), ("w1", AGENT, "good")]
    with opened.database.read() as conn:
        agent, channel, good = map(read_rules(conn, asks).__getitem__, asks)
    assert agent == RuleFound(None, "A", is_there=True, malformed="parameters must be an object")
    assert channel == RuleFound(None, "C", is_there=True, malformed="settings must be an object")
    assert good.plan is not None


@pytest.mark.parametrize("everywhere", [None, 0, 1])
@pytest.mark.parametrize("here", [None, 0, 1])
def test_steps_are_on_where_both_halves_of_the_flag_say_so(
    opened: Backends, everywhere: int | None, here: int | None
) -> None:
    def work(conn: Connection) -> None:
        add_agent(conn, "a", {**LEGACY, "steps": [STEP]})
        if everywhere is not None:
            add_row(conn, FEATURE_FLAGS, name=SEQUENTIAL_IDLE, enabled=everywhere)
        if here is not None:
            add_row(conn, FLAGS, workspace_id="w1", name=SEQUENTIAL_IDLE, enabled=here)
        turn_on(conn, "w2")

    opened.database.transact(work)
    with opened.database.read() as conn:
        assert is_sequential_idle_on(conn, "w1") is bool(everywhere and here)
        plan = read_rules(conn, [("w1", AGENT, "a")])["w1", AGENT, "a"].plan
    assert plan is not None
    assert plan.mode is (IdleMode.STEPS if everywhere and here else IdleMode.LEGACY)
