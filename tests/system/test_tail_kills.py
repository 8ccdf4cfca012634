"""`knockon tail --api` while several processes write and the API dies: each line once, and in order."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from shared.db.history import RunLog, insert_logs
from shared.model.runs import LogLine
from shared.ports import free_port
from shared.services.workspaces import Scope, create_key
from tests.processes import ROOT
from tests.system.commands import Home, Started
from tests.system.conftest import Opener
from tests.system.deployment import CALLER, WORKSPACE, Deployment
from tests.waiting import poll

HOST = "127.0.0.1"
WRITERS = 4
TRANSACTIONS = 60
# Each writer holds transactions open for a while: ids are committed in another order than they are given.
WRITE = """
import random
import sys
import threading

from shared.db.engine import open_database
from shared.db.history import RunLog, insert_logs
from shared.model.runs import LogLine
from shared.time.clock import SystemClock

database, clock, pause = open_database(sys.argv[1]), SystemClock(), threading.Event()
chance = random.Random(sys.argv[2])
for number in range(int(sys.argv[3])):
    with database.begin() as conn:
        for part in range(chance.randint(1, 3)):
            line = LogLine("info", f"{sys.argv[2]} {number} {part}", clock.now())
            insert_logs(conn, [RunLog(sys.argv[4], None, None, line)])
            pause.wait(chance.random() * 0.01)
    pause.wait(chance.random() * 0.02)
database.dispose()
"""


@pytest.fixture
def site(opened: Opener) -> Deployment:
    return opened()


@pytest.fixture
def port() -> int:
    return free_port(HOST, 0)


def is_ready(port: int) -> bool:
    try:
        return httpx2.get(f"http://{HOST}:{port}/readyz", trust_env=False).status_code == 200
    except httpx2.TransportError:
        return False


@pytest.fixture
def tail(site: Deployment, port: int, tmp_path: Path) -> Iterator[Started]:
    """Follow the log over the API from its first line on, as a process that knows no database."""
    key = create_key(site.backends.database, site.backends.clock, CALLER, ("tail", [Scope.RUNS_READ])).text
    settings = {"KNOCKON_API_URL": f"http://{HOST}:{port}", "KNOCKON_API_KEY": key, "NO_PROXY": "*"}
    home = Home(tmp_path / "elsewhere", settings)
    with home.started("tail", "--since", "1h", "-o", "json") as started:
        yield started


def seen(tail: Started) -> list[dict[str, Any]]:
    """Give the whole lines that were printed; what else is said is no JSON."""
    whole = tail.said().splitlines(keepends=True)
    return [orjson.loads(line) for line in whole if line.startswith("{") and line.endswith("\n")]


def stored(site: Deployment) -> list[tuple[str, str]]:
    rows = site.all(
        "SELECT xid, id, message FROM automation_logs WHERE workspace_id = :workspace ORDER BY xid, id",
        workspace=WORKSPACE,
    )
    return [(f"{row.xid}-{row.id}", row.message) for row in rows]


def write(database_url: str, stack: ExitStack) -> list[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", WRITE, database_url]
    return [
        stack.enter_context(subprocess.Popen([*command, str(writer), str(TRANSACTIONS), WORKSPACE], cwd=ROOT))
        for writer in range(WRITERS)
    ]


def test_no_line_is_lost_or_comes_twice_while_the_api_is_killed(
    site: Deployment, port: int, database_url: str, request: pytest.FixtureRequest
) -> None:
    api = site.fleet.start("api", API_PORT=port)
    poll(lambda: is_ready(port), 30)
    tail: Started = request.getfixturevalue("tail")
    with ExitStack() as stack:
        writers = write(database_url, stack)
        for count in (30, 120):
            poll(lambda count=count: len(seen(tail)) >= count, 60)  # type: ignore[misc]
            api.kill9()
            api = site.fleet.start("api", API_PORT=port)
            poll(lambda: is_ready(port), 30)
        assert [writer.wait(60) for writer in writers] == [0] * WRITERS
    wanted = stored(site)
    poll(lambda: len(seen(tail)) >= len(wanted), 60)
    assert [(line["id"], line["message"]) for line in seen(tail)] == wanted
    assert "asking again in" in tail.said()
    tail.process.send_signal(signal.SIGINT)
    assert tail.process.wait(20) == 0
    api.ask_to_end()
    assert api.wait() == 0


def test_the_api_ends_in_order_under_those_who_follow(
    site: Deployment, port: int, request: pytest.FixtureRequest
) -> None:
    api = site.fleet.start("api", API_PORT=port, SHUTDOWN_GRACE_S=60)
    poll(lambda: is_ready(port), 30)
    tail: Started = request.getfixturevalue("tail")
    line = RunLog(WORKSPACE, None, None, LogLine("info", "hello", datetime.now(UTC)))
    with site.backends.database.begin() as conn:
        insert_logs(conn, [line])
    tail.await_line("hello")
    api.ask_to_end()
    assert api.wait() == 0
    assert api.has_logged("api_stopped")
    tail.await_line("asking again in")
