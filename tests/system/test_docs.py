"""What the first pages tell a reader to type is typed here, against everything that `knockon up` starts."""

import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from knockon.embedded import find_redis
from shared.db.engine import open_database
from shared.db.run_lists import RunQuery, list_runs
from shared.model.automation import Definition, definition_to_json, load_yaml
from shared.model.moves import ENDED
from shared.redis_port import open_redis
from tests.pages import ROOT
from tests.system.commands import Home
from tests.waiting import poll

PAGES = (ROOT / "README.md", ROOT / "docs" / "getting-started.md")
STREAM = "factory:events"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"make (\w+)")


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Give the fenced blocks of a page: language, mark, text."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.fixture
def checkout(tmp_path: Path) -> Home:
    """Give a folder that looks like a checkout after its set-up."""
    home = Home(tmp_path / "checkout", {})
    (home.folder / ".venv").mkdir()
    (home.folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    (home.folder / "examples").symlink_to(ROOT / "examples")
    return home


def test_every_command_of_the_first_pages_works(checkout: Home) -> None:
    with checkout.started("up") as up:
        up.await_line("worker_started")
        up.await_line("matcher_started")
        for _, mark, text in [block for page in PAGES for block in blocks(page)]:
            if mark.startswith("file="):
                (checkout.folder / mark.removeprefix("file=")).write_text(text)
            elif mark == "run":
                run(checkout, text)
                poll(lambda: not is_busy(checkout), 60)
        large = checkout.ask("runs", "list", "--automation", "large-booking")
        assert sorted(f"{each['status']} {each['skip_reason']}" for each in large) == [
            "SUCCEEDED None",
            "SUCCEEDED None",
            "SUCCEEDED None",
            "SUCCEEDED conditions",
        ]
        (mended,) = checkout.ask("runs", "list", "--automation", "report-no-show")
        assert mended["status"] == "SUCCEEDED"


def is_busy(checkout: Home) -> bool:
    """Tell whether an event is not matched yet or a run has not ended; a reader is slower than both."""
    data = checkout.folder / ".knockon"
    server = find_redis(data)
    assert server is not None
    with closing(open_redis(server.url)) as client:
        if client.exists(STREAM):
            (group,) = client.xinfo_groups(STREAM)
            newest = client.xinfo_stream(STREAM)["last-generated-id"]
            if group["pending"] or group["last-delivered-id"] != newest:
                return True
    database = open_database(f"sqlite:///{data / 'knockon.db'}")
    with database.read() as conn:
        runs = list_runs(conn, RunQuery("default", 100))
    database.dispose()
    return any(each.status not in ENDED for each in runs)


def run(checkout: Home, script: str) -> None:
    """Run one block as a reader would paste it; every line must succeed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=checkout.folder,
        env=checkout.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_that_is_not_run_holds_make_alone(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for language, mark, text in blocks(page):
        if language != "sh" or mark == "run":
            continue
        for line in text.splitlines():
            target = TARGET.match(line)
            assert target is not None, line
            assert f"\n{target[1]}:" in makefile


def test_what_the_tutorial_makes_is_not_in_the_examples() -> None:
    examples = load_yaml((ROOT / "examples" / "automations.yaml").read_text(encoding="utf-8"))
    written = [text for _, mark, text in blocks(PAGES[1]) if mark.startswith("file=")]
    made = [each for text in written for each in load_yaml(text)]
    assert made
    assert {each.key for each in made}.isdisjoint(each.key for each in examples)
    assert _types(made).isdisjoint(_types(examples))


def _types(definitions: Iterable[Definition]) -> set[str]:
    configs = [definition_to_json(each)["trigger"].get("config", {}) for each in definitions]
    return {config["eventType"] for config in configs if "eventType" in config}


def test_the_readme_begins_with_the_two_commands() -> None:
    _, _, text = blocks(PAGES[0])[0]
    assert [line.split(" #")[0].strip() for line in text.splitlines()] == ["make run", "make test"]
