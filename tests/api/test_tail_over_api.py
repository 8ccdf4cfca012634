"""`knockon tail --api`: what it prints, what it lacks, and how it is refused; it needs no database."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from shared.db.engine import Database
from shared.db.history import RunLog, insert_logs
from shared.model.runs import LogLine
from shared.services.workspaces import Scope
from tests.calling import Api
from tests.people import NOW
from tests.system.commands import Home

Tail = Callable[..., str]


@pytest.fixture
def tail(api: Api, tmp_path: Path) -> Tail:
    """Run the command where nothing but the API is known, and give what it says; it must end with `code`."""
    environment = {"KNOCKON_API_URL": api.url, "KNOCKON_API_KEY": api.key(Scope.RUNS_READ)}

    def run(*arguments: str, code: int = 0, **env: str) -> str:
        home = Home(tmp_path / "elsewhere", {**environment, **env})
        return home.run("tail", "--no-follow", *arguments, code=code)

    return run


def write(database: Database, count: int, **of: Any) -> None:
    lines = [
        RunLog("w1", None, of.get("run"), LogLine(of.get("level", "info"), f"line {number}", NOW))
        for number in range(count)
    ]
    with database.begin() as conn:
        insert_logs(conn, lines)


def messages(said: str) -> list[str]:
    return [orjson.loads(line)["message"] for line in said.splitlines()]


def test_the_last_lines_are_printed_or_all_that_are_asked_for(api: Api, tail: Tail) -> None:
    write(api.backends.database, 250, run="r1")
    write(api.backends.database, 1, run="r2", level="error")
    assert messages(tail("-o", "json")) == [*(f"line {number}" for number in range(241, 250)), "line 0"]
    assert messages(tail("-o", "json", "--run", "r1")) == [f"line {number}" for number in range(250)]
    assert messages(tail("-o", "json", "--level", "warning")) == ["line 0"]
    assert messages(tail("-o", "json", "--since", "1m")) == []
    assert "2026-03-01 12:00:00.000Z  error" in tail("--run", "r2")


def test_what_is_missing_or_refused_is_told_in_one_line(api: Api, tail: Tail) -> None:
    cases = [
        (tail("--automation", "nothing", code=1), "the API answers 404: there is no automation 'nothing'"),
        (tail(code=1, KNOCKON_API_KEY="kn_live_x"), "the API answers 401"),
        (tail(code=1, KNOCKON_API_KEY=api.key(Scope.EVENTS_READ)), "the API answers 403"),
        (tail(code=1, KNOCKON_API_KEY=""), "KNOCKON_API_KEY: set it to a key"),
        (tail("--api", "http://127.0.0.1:1", code=1), "http://127.0.0.1:1 does not answer"),
        (tail("--api", "ftp://here", code=2), "is no address of an API"),
    ]
    for said, expected in cases:
        assert expected in said
        assert "Traceback" not in said
