"""The wheel as people install it: in a virtual environment of its own, used far from any checkout."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.plugin_wheels import install_example
from tests.servers import locked
from tests.system.commands import Home
from tests.waiting import poll

LOCK = ROOT / "requirements.lock"
PINNED = re.compile(r"^([\w.-]+)==", re.MULTILINE)
FROM_WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
    "wheel"
]
INSIDE = frozenset(FROM_WHEEL["sources"])
BESIDE = frozenset({"tests", "tools", "benchmarks"})
DEADLY = """
- key: deadly
  name: Deadly
  trigger: {type: EVENT, config: {eventType: order.placed}}
  actions: [{type: CREATE_NOTIFICATION, config: {title: Hello}}]
"""
PICKING = """
- key: picking
  name: Picking
  trigger: {type: EVENT, config: {eventType: order.placed}}
  actions: [{type: PICK_ONE, config: {choices: [ada], by: "{{ orderId }}"}}]
"""
QUICK = {"RUN_LEASE_S": "2", "LEASE_RENEW_S": "0.5", "WATCHDOG_LEASES_S": "0.5", "WATCHDOG_HANDLES_S": "0.5"}
LIMIT_S = 150


@pytest.fixture(scope="session")
def installed(servers_folder: Path) -> Path:
    """Give a virtual environment into which the wheel was installed, made once in a session."""
    folder = servers_folder / "wheel"
    folder.mkdir(exist_ok=True)
    with locked(folder):
        if not (folder / "done").exists():
            call(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
            (wheel,) = folder.glob("*.whl")
            call(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
            install(wheel, folder / "venv" / "bin" / "python")
            (folder / "done").touch()
    return folder / "venv"


def call(*command: str | Path) -> None:
    """Run a command in the checkout; what it says stands in the error if it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def install(wheel: Path, python: Path) -> None:
    """Install the wheel and what it asks for, in the locked versions; from the cache if all lies there."""
    given: list[str | Path] = ["install", "-c", LOCK, wheel]
    uv = shutil.which("uv", path=Path(sys.executable).parent) or shutil.which("uv")
    if uv is None:
        call(sys.executable, "-m", "pip", "--python", python, *given)
        return
    try:
        call(uv, "pip", *given, "--python", python, "--offline")
    except AssertionError:
        call(uv, "pip", *given, "--python", python)


def site_packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python3*/site-packages")
    return found


def top_level(distribution: Distribution) -> set[str]:
    """Name what a distribution lays into site-packages itself."""
    return {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}


def takers(found: Iterable[Distribution], names: Collection[str]) -> list[tuple[str, str]]:
    """Give each distribution that provides an importable module or package of one of the names."""
    return sorted(
        (distribution.name, name)
        for distribution in found
        for name in {entry.split(".")[0] for entry in top_level(distribution)} & set(names)
    )


def test_an_installation_adds_one_package(installed: Path) -> None:
    found = list(distributions(path=[str(site_packages(installed))]))
    (ours,) = [each for each in found if each.name == "knockon"]
    assert top_level(ours) == {"knockon", f"knockon-{ours.version}.dist-info"}
    assert takers(found, INSIDE | BESIDE) == []
    assert (site_packages(installed) / "knockon" / "py.typed").exists()


def test_the_demo_ends_well_in_an_installation(installed: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "home", {}, installed / "bin" / "knockon")
    assert "Usage" in home.run("--help")
    said = home.run("demo", timeout_s=LIMIT_S)
    assert said.count("\nok  ") == 8


def test_a_run_that_kills_is_driven_alone_in_an_installation(installed: Path, tmp_path: Path) -> None:
    fault = {"KNOCKON_FAULT": "action.before_effect:kill9"}
    home = Home(tmp_path / "home", {**QUICK, **fault}, installed / "bin" / "knockon")
    (home.folder / "automations.yaml").write_text(DEADLY)
    with home.started("up") as up:
        up.await_line("worker_started")
        home.run("apply", "-f", "automations.yaml")
        home.run("publish", "order.placed")
        poll(lambda: "run dead-lettered" in home.run("tail", "--no-follow"), LIMIT_S, every_s=0.5)
        (run,) = home.ask("runs", "list")
        assert run["status"] == "DEAD_LETTER"
        assert up.said().count("solo_run_died") == 2
        assert "SIGKILL" in home.run("runs", "show", run["id"])
        assert "No module named" not in up.said()


def test_a_plugin_acts_in_an_installation(installed: Path, tmp_path: Path) -> None:
    laid = install_example(tmp_path / "plugin")
    home = Home(tmp_path / "home", {"PYTHONPATH": str(laid)}, installed / "bin" / "knockon")
    (home.folder / "automations.yaml").write_text(PICKING)
    with home.started("up") as up:
        up.await_line("worker_started")
        home.run("apply", "-f", "automations.yaml")
        assert "PICK_ONE, by knockon-pick-one 0.1.0" in home.run("doctor")
        home.run("publish", "order.placed", "--payload", '{"orderId": "o1"}')
        poll(lambda: "run completed" in home.run("tail", "--no-follow"), LIMIT_S, every_s=0.5)
        (run,) = home.ask("runs", "list")
        assert "ada" in home.run("runs", "show", run["id"])


def test_no_locked_dependency_takes_a_name_of_ours() -> None:
    locked_names = {normal(name) for name in PINNED.findall(LOCK.read_text())}
    found = [each for each in distributions() if normal(each.name) in locked_names]
    assert len(found) > len(locked_names) / 2
    assert takers(found, INSIDE | BESIDE | {"knockon"}) == []


def normal(name: str) -> str:
    """Write a distribution's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("path", ["watchdog/__init__.py", "watchdog.py", "watchdog/events/late.py"])
def test_a_distribution_that_takes_a_name_is_seen(tmp_path: Path, path: str) -> None:
    described = tmp_path / "observer-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: observer\nVersion: 1.0\n")
    (described / "RECORD").write_text(f"{path},,\nobserver.py,,\n../../../bin/worker,,\n")
    assert takers(distributions(path=[str(tmp_path)]), INSIDE | BESIDE) == [("observer", "watchdog")]
