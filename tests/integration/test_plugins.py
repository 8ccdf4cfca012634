"""Action types that other distributions bring: found, checked, carried out, and never in the way."""

import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

from executors.outbound import Outbound
from executors.registry import all_executors, executor_for
from knockon.doctor import plugin_findings
from knockon.findings import Level
from pipeline.engine import Engine
from shared.action_types import action_types, config_model
from shared.errors import DefinitionError, FatalError
from shared.model.actions import ACTION_CONFIGS
from shared.model.automation import parse_definition
from shared.plugins import GROUP, Plugins, installed_plugins, read_plugins
from tests.acting import Stage, action
from tests.contexts import Trip, guarded_way_out
from tests.listening import capture_logs
from tests.pages import page
from tests.plugin_wheels import install_example, lay
from tests.rooms import OpenRoom, start

ODD = """
from knockon.plugins import ActionConfig, ActionResult, Plugin, Warned
from pydantic import field_validator

class Odd(ActionConfig):
    n: int = 0

    @field_validator("n")
    @classmethod
    def check(cls, n):
        if n > 9:
            raise KeyError("a fault of the check")
        return n

def run(config, context):
    match config.n:
        case 1: raise RuntimeError("broken inside")
        case 2: raise SystemExit(3)
        case 3: return {"text": "x"}
        case 4: return ActionResult({"text": "x"}, ("no effect",))
        case 5: return ActionResult(["x"])
        case 6: return ActionResult({"n": 6}, warnings=("no warning",))
        case 7: return ActionResult({"n": 7}, warnings=(Warned("odd number", {"n": 7}),))
    return ActionResult({"n": config.n, "id": context.idempotency_id})

GOOD = Plugin(Odd, run)
NO_CONFIG = Plugin(dict, run)
NO_FUNCTION = Plugin(Odd, "run")
NOTHING = run
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_example(tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def found_anew() -> Iterator[None]:
    """Have this process look for its plug-ins again, now and after the test."""
    forget()
    yield
    forget()
    for name in ("knockon_pick_one", "odd"):
        sys.modules.pop(name, None)


def forget() -> None:
    installed_plugins.cache_clear()
    all_executors.cache_clear()


@pytest.fixture
def http() -> Iterator[Outbound]:
    outbound = guarded_way_out()
    yield outbound
    outbound.close()


def read(*folders: Path) -> Plugins:
    entries = [
        entry
        for found in distributions(path=[str(folder) for folder in folders])
        for entry in found.entry_points
        if entry.group == GROUP
    ]
    return read_plugins(entries, ACTION_CONFIGS)


def test_the_example_is_an_action_type_like_any_other(
    example: Path,
    open_here: OpenRoom,
    engines: list[Engine],
    monkeypatch: pytest.MonkeyPatch,
    found_anew: None,
) -> None:
    monkeypatch.syspath_prepend(str(example))
    assert action_types() == (*ACTION_CONFIGS, "PICK_ONE")
    assert [finding.text for finding in plugin_findings()] == ["PICK_ONE, by knockon-pick-one 0.1.0"]
    stage = Stage(room := open_here(), start(room, engines))
    stage.knows(status="open")
    pick = action("PICK_ONE", choices=["ada", "{{ second }}"], by="{{ conversation.id }}")
    assign = action("ASSIGN", assignee_id="{{ actions.1.output.choice }}")
    row = stage.acts(pick, assign, on={"conversation": {"id": "c1"}, "second": 7})
    again = stage.acts(pick, on={"conversation": {"id": "c1"}, "second": 7})
    assert stage.outputs(row)["1"] == stage.outputs(again)["1"]
    assert stage.state()["assigneeId"] == stage.outputs(row)["1"]["choice"] != ""
    nothing = stage.acts(action("PICK_ONE", choices=["a"], by="{{ nothing }}"))
    unfit = stage.acts(action("PICK_ONE", choices=["{{ all }}"], by="x"), on={"all": [1]})
    assert (stage.failure(nothing), stage.failure(unfit)) == ("PICK_BY_NOTHING", "CONFIG_INVALID")


def test_a_plugins_config_is_checked_when_it_is_saved(
    example: Path, monkeypatch: pytest.MonkeyPatch, found_anew: None
) -> None:
    monkeypatch.syspath_prepend(str(example))
    assert faults(action("PICK_ONE", choices=[], by="{{ x }", extra=1)) == {
        "actions[0].config.choices",
        "actions[0].config.extra",
    }
    assert faults(action("PICK_ONE", choices=["a"], by="{{ x")) == {"actions[0].config.by"}


def faults(written: dict[str, Any]) -> set[str]:
    with pytest.raises(DefinitionError) as caught:
        parse_definition({"key": "k", "name": "n", "trigger": {"type": "MANUAL"}, "actions": [written]})
    return {fault.path for fault in caught.value.faults}


def test_a_run_whose_plugin_is_missing_says_so(
    example: Path,
    open_here: OpenRoom,
    engines: list[Engine],
    monkeypatch: pytest.MonkeyPatch,
    found_anew: None,
) -> None:
    with monkeypatch.context() as while_saving:
        while_saving.syspath_prepend(str(example))
        room = open_here()
        automation = room.automation(action("PICK_ONE", choices=["a"], by="b"))
        forget()
    assert config_model("PICK_ONE") is None
    stage = Stage(room, start(room, engines))
    run_id = room.run(automation)
    stage.engine.take([run_id])
    assert stage.engine.wait_idle(10)
    row = room.row(run_id)
    assert stage.failure(row) == "UNKNOWN_ACTION"
    assert "PICK_ONE" in str(row.error)


def test_a_run_that_is_driven_alone_finds_its_plugin(
    example: Path,
    open_here: OpenRoom,
    engines: list[Engine],
    monkeypatch: pytest.MonkeyPatch,
    found_anew: None,
) -> None:
    monkeypatch.syspath_prepend(str(example))
    room = open_here()
    addresses = {"REDIS_URL": room.parts.settings.redis_url, "DATABASE_URL": room.parts.settings.database_url}
    for name, value in {**addresses, "PYTHONPATH": example, "LOG_LEVEL": "error"}.items():
        monkeypatch.setenv(name, str(value))
    run_id = room.run(room.automation(action("PICK_ONE", choices=["ada"], by="x")))
    room.set(run_id, crash_count=1, retry_count=1, failures=1)
    engine = start(room, engines)
    engine.take([run_id])
    assert engine.wait_idle(30)
    assert room.status(run_id) == "SUCCEEDED"


def test_what_cannot_be_used_is_named_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {
        "GOOD": "odd:GOOD",
        "SEND_WEBHOOK": "odd:GOOD",
        "lower": "odd:GOOD",
        "GONE": "odd:GONE",
        "NO_CONFIG": "odd:NO_CONFIG",
        "NO_FUNCTION": "odd:NO_FUNCTION",
        "NOTHING": "odd:NOTHING",
    }
    lay(tmp_path, "odd", entries, ODD)
    lay(tmp_path, "ending", {"ENDING": "ending:X"}, "raise SystemExit(1)")
    lay(tmp_path, "raising", {"RAISING": "raising:X"}, "1 / 0")
    lay(tmp_path, "one", {"TWICE": "odd:GOOD"})
    lay(tmp_path, "two", {"TWICE": "odd:GOOD"})
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins = read(tmp_path)
    assert {name: each.distribution for name, each in plugins.found.items()} == {"GOOD": "odd 1.0"}
    reasons = {(each.name, each.distribution.split()[0]): each.reason for each in plugins.broken}
    assert reasons.keys() == {
        *((name, "odd") for name in entries if name != "GOOD"),
        ("ENDING", "ending"),
        ("RAISING", "raising"),
        ("TWICE", "one"),
        ("TWICE", "two"),
    }
    assert "ZeroDivisionError" in reasons["RAISING", "raising"]
    assert "engine" in reasons["SEND_WEBHOOK", "odd"]


def test_a_broken_plugin_is_told_of_once_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found_anew: None
) -> None:
    lay(tmp_path, "raising", {"RAISING": "raising:X"}, "1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    with capture_logs() as lines:
        assert config_model("RAISING") is None
        assert config_model("SEND_WEBHOOK") is not None
        assert set(all_executors()) == set(ACTION_CONFIGS)
        [finding] = plugin_findings()
    told = [line for line in lines if line["event"] == "plugin_refused"]
    assert [(line["name"], line["distribution"]) for line in told] == [("RAISING", "raising 1.0")]
    assert (finding.level, "raising 1.0" in finding.text) == (Level.FAIL, True)


def test_what_a_plugin_does_wrong_ends_its_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found_anew: None, http: Outbound
) -> None:
    lay(tmp_path, "odd", {"ODD": "odd:GOOD"}, ODD)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = config_model("ODD")
    assert model is not None
    context = Trip(http).context()
    execute = executor_for("ODD")
    assert execute(model.model_validate({"n": 0}), context).output == {"n": 0, "id": "0190-run:1"}
    assert execute(model.model_validate({"n": 7}), context).warnings[0].what == "odd number"
    for number in (2, 3, 4, 5, 6):
        with pytest.raises(FatalError, match="PLUGIN_BROKEN"):
            execute(model.model_validate({"n": number}), context)
    with pytest.raises(RuntimeError):
        execute(model.model_validate({"n": 1}), context)
    assert faults(action("ODD", n=10)) == {"actions[0].config"}
    assert not model.is_local


def test_the_example_of_the_page_is_a_plugin(http: Outbound) -> None:
    (written,) = page("plugins.md").blocks("python")
    shown: dict[str, Any] = {}
    exec(compile(written.text, "plugins.md", "exec"), shown)
    given = shown["GREET"].execute(shown["Greeting"](name="Ada"), Trip(http).context())
    assert given.output == {"text": "Hello Ada"}
    told = {
        name.strip("`") for row in page("plugins.md").table("The function") for name in row[0].split(", ")
    }
    assert told <= {*type(Trip(http).context()).__dataclass_fields__, "idempotency_id"}
