"""Fixtures of the tests that need servers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from knockon.cli.app import make_app
from pipeline.engine import Engine
from shared.services.backends import Backends
from tests.commanding import AUTOMATIONS, Knockon
from tests.people import opened_backends
from tests.rooms import Execute, OpenRoom, Room, open_room


@pytest.fixture
def backends(database_url: str, redis_url: str) -> Iterator[Backends]:
    """Give a deployment's servers with the workspaces w1 and w2, once for each kind of database."""
    with opened_backends(database_url, redis_url) as opened:
        yield opened


@pytest.fixture
def open_here(redis_url: str, database_url: str) -> Iterator[OpenRoom]:
    """Open rooms on this test's servers, and close them."""
    rooms: list[Room] = []

    def opened(executors: dict[str, Execute] | None = None, **settings: Any) -> Room:
        rooms.append(open_room(redis_url, database_url, executors, **settings))
        return rooms[-1]

    yield opened
    for room in rooms:
        room.database.dispose()
        room.parts.redis.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database_of_a_module(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Give the address of a migrated database for all tests of a module, which change nothing in it."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("module") / "knockon.db"
        path.write_bytes(request.getfixturevalue("sqlite_template").read_bytes())
        yield f"sqlite:///{path}"
        return
    lender = request.getfixturevalue("postgres_lender")
    name = lender.lend()
    yield lender.server.url(name)
    lender.take_back(name)


@pytest.fixture
def room(open_here: OpenRoom) -> Room:
    """Open one room as it is by default, once for each kind of database."""
    return open_here()


@pytest.fixture
def engines(open_here: OpenRoom) -> Iterator[list[Engine]]:
    """Collect the engines that a test starts, and stop them before their rooms close."""
    del open_here
    started: list[Engine] = []
    yield started
    for engine in started:
        engine.stop(grace_s=2)


@pytest.fixture
def knockon(database_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Knockon:
    """Run a command against this test's servers; it must end with `code`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "automations.yaml").write_text(AUTOMATIONS)
    servers = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "KNOCKON_WORKSPACE": "w1"}

    def run(*arguments: str, code: int = 0, stdin: Any = None, **env: str) -> Result:
        result = CliRunner().invoke(make_app(), arguments, env={**servers, **env}, input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run
