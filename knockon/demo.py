"""The demo: real processes run the example automations on the example events, and the end is checked.

It has servers of its own in a folder of its own. Where REDIS_URL or DATABASE_URL is set that server is used,
under a prefix and a workspace of the demo's own.
"""

import shlex
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

from knockon.cli.connections import caller
from knockon.cli.output import (
    Form,
    print_error,
    print_line,
    print_note,
    print_table,
    show_instant,
)
from knockon.cli.runs import print_runs
from knockon.client import Publisher
from knockon.demo_endpoint import endpoint
from knockon.demo_story import Verdict, is_over, judge
from knockon.demo_traces import delete_automations, delete_keys
from knockon.event_lines import publish_lines
from knockon.examples import AUTOMATIONS, ENDPOINT, EVENTS
from knockon.supervisor import Supervisor
from knockon.up import Counts, served
from shared.db.engine import Database
from shared.db.inbox import InboxQuery, list_notices
from shared.db.log_reads import LogQuery, newest_logs
from shared.db.migrating import migrate
from shared.db.reads import RunSummary
from shared.db.run_lists import RunQuery, list_runs
from shared.ids import new_id
from shared.model.automation import load_yaml
from shared.process import FAILED, INTERRUPTED, StopFlag
from shared.services.automations import apply_changes
from shared.services.backends import Backends, open_backends
from shared.services.definitions import Leftovers
from shared.services.workspaces import create_workspace
from shared.settings import Settings
from shared.time.clock import SystemClock

DEADLINE_S: Final = 45.0
POLL_S: Final = 0.1
STOP_GRACE_S: Final = 5.0
MOST: Final = 200
SETTLE_S: Final = 0.5
POOL_SIZE: Final = 2
WORDS_KEPT: Final = 100


class Keep(StrEnum):
    """What becomes of the demo's data folder."""

    NOTHING = "nothing"
    DATA = "data"


class LastWords:
    """What the demo's processes said last, for whoever asks why the demo failed, and for nobody else."""

    def __init__(self) -> None:
        """Have heard nothing yet."""
        self._lines: deque[str] = deque(maxlen=WORDS_KEPT)

    def add(self, name: str, line: str) -> None:
        """Keep one line of a process."""
        self._lines.append(f"{name:<10} | {line}")

    def print(self) -> None:
        """Print what was kept, to stderr."""
        for line in tuple(self._lines):
            print_note(line)


def run_demo(settings: Settings, keep: Keep) -> int:
    """Run it and print what became of every event; 0 only if each ended as it must, 130 if it was stopped."""
    stop, words = StopFlag(), LastWords()
    stop.listen()
    with _folder(keep) as folder, endpoint() as address:
        name = f"demo-{new_id()[-12:]}"
        prefix = f"{name}:" if settings.redis_url or settings.database_url else ""
        own = settings.model_copy(update={"data_dir": folder, "prefix": prefix})
        with served(own, words.add) as servers:
            environment = servers.environment
            ready = own.model_copy(
                update={"redis_url": environment["REDIS_URL"], "database_url": environment["DATABASE_URL"]}
            )
            supervisor = Supervisor(
                Counts(workers=1, matchers=1).specs(),
                _environment(environment, prefix),
                SystemClock(),
                words.add,
            )
            try:
                code = _play(ready, (name, address), supervisor, stop)
            finally:
                supervisor.stop(STOP_GRACE_S)
            _clean(ready, name)
        if code == FAILED:
            words.print()
        return code


def _play(settings: Settings, names: tuple[str, str], supervisor: Supervisor, stop: StopFlag) -> int:
    workspace, address = names
    migrate(settings.database_url or "")
    with _opened(settings) as backends:
        print_line("starting a matcher, a worker, a scheduler, timers and a watchdog")
        supervisor.tend()
        _apply(backends, workspace, address)
        _publish(settings, workspace)
        _await_end(backends.database, workspace, supervisor, stop)
        if stop.is_raised():
            print_line("interrupted")
            return INTERRUPTED
        return _report(backends.database, workspace)


def _apply(backends: Backends, workspace: str, address: str) -> None:
    who = caller(workspace)
    create_workspace(backends.database, backends.clock, who, "owner@example.test")
    text = AUTOMATIONS.read_text(encoding="utf-8").replace(ENDPOINT, address)
    changes = apply_changes(backends, who, load_yaml(text), Leftovers.KEEP)
    print_line(f"applied {len(changes)} automations from {AUTOMATIONS.name}")


def _publish(settings: Settings, workspace: str) -> None:
    with (
        Publisher(
            settings.redis_url or "", stream=settings.events_stream, prefix=settings.prefix, source="demo"
        ) as publisher,
        EVENTS.open(encoding="utf-8") as lines,
    ):
        (done,) = publish_lines(publisher, lines, workspace)
    print_line(f"published {done.published} events from {EVENTS.name}; waiting for their runs")


def _await_end(database: Database, workspace: str, supervisor: Supervisor, stop: StopFlag) -> None:
    """Wait until as many runs as there must be have ended, and a moment longer for one too many."""
    clock = SystemClock()
    deadline = clock.monotonic() + DEADLINE_S
    while not is_over(_runs(database, workspace)):
        supervisor.tend()
        if stop.wait(POLL_S) or clock.monotonic() > deadline:
            return
    stop.wait(SETTLE_S)


def _report(database: Database, workspace: str) -> int:
    runs = _runs(database, workspace)
    with database.read() as conn:
        notices = list_notices(conn, InboxQuery(workspace, MOST))
        logs = newest_logs(conn, LogQuery(workspace), most=MOST)
    print_line("\nruns", "bold")
    print_runs(list(reversed(runs)), Form.TABLE)
    print_line("\nlog", "bold")
    print_table(
        ("AT", "LEVEL", "AUTOMATION", "MESSAGE"),
        ((show_instant(row.at), row.level, row.automation_key, row.message) for row in logs),
    )
    print_line("")
    verdicts = judge(runs, notices)
    for verdict in verdicts:
        _print_verdict(verdict)
    if all(verdict.holds for verdict in verdicts):
        return 0
    print_error("the demo did not end as it must")
    return FAILED


def _print_verdict(verdict: Verdict) -> None:
    mark, style = ("ok  ", "green") if verdict.holds else ("FAIL", "red")
    print_line(f"{mark}  {verdict.claim}", style)


def _runs(database: Database, workspace: str) -> list[RunSummary]:
    with database.read() as conn:
        return list_runs(conn, RunQuery(workspace, MOST))


def _clean(settings: Settings, workspace: str) -> None:
    """Take away what would stay on servers that are not the demo's own."""
    if not settings.prefix:
        return
    with _opened(settings) as backends:
        delete_automations(backends, caller(workspace))
    delete_keys(settings.redis_url or "", settings.prefix)


def _environment(servers: dict[str, str], prefix: str) -> dict[str, str]:
    """Give the processes' environment. On a shared database they leave alone what is not of the demo."""
    return {
        **servers,
        "KNOCKON_PREFIX": prefix,
        "WEBHOOK_ALLOW_PRIVATE": "true",
        "LOG_LEVEL": "error",
        "HANDLE_LOST_S": "86400",
        "WATCHDOG_LEASES_S": "86400",
    }


@contextmanager
def _folder(keep: Keep) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="knockon-demo-"))
    try:
        yield folder
    finally:
        if keep is Keep.DATA:
            own = f"KNOCKON_DATA_DIR={shlex.quote(str(folder))}"
            print_line(f"the data are in {folder}; look at them with: {own} knockon up")
        else:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _opened(settings: Settings) -> Iterator[Backends]:
    backends = open_backends(settings, POOL_SIZE)
    try:
        yield backends
    finally:
        backends.close()
