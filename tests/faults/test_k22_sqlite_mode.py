"""SQLite under several processes: writers take turns, a death breaks nothing, limits are told.

A reader that becomes a writer would fail at once with "database is locked" whatever it may wait, so whoever
writes says so when it begins.
"""

import ctypes
import os
import resource
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from shared.db.engine import is_outage, open_database
from shared.faults import FaultPoint
from tests.system.account import check_account
from tests.system.commands import COMMAND
from tests.system.deployment import Deployment, open_deployment
from tests.system.fleet import FORKS, Process
from tests.waiting import poll

WRITERS = 4
ROUNDS = 100
EVENTS = 20
RESCUE_S = 60
SMALL_BYTES = 64 * 1024
FULL = ("disk I/O error", "database or disk is full")
READ_ONLY = "error: the database cannot be used: attempt to write a readonly database"
PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def check_file(url: str) -> None:
    """The file is whole, whatever its processes died of."""
    with closing(sqlite3.connect(path_of(url))) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
        assert conn.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def add_up(url: str, rounds: int) -> None:
    """Read a number and write one more, many times, as a process of its own."""
    database = open_database(url)
    for _ in range(rounds):
        with database.begin() as conn:
            number = conn.execute(text("SELECT n FROM tally")).scalar_one()
            conn.execute(text("UPDATE tally SET n = :n"), {"n": number + 1})
    database.dispose()


def test_writers_take_turns_beside_a_long_reader(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    with database.begin() as conn:
        conn.execute(text("CREATE TABLE tally (n INTEGER NOT NULL)"))
        conn.execute(text("INSERT INTO tally VALUES (0)"))
    with database.read() as conn:
        assert conn.execute(text("SELECT n FROM tally")).scalar_one() == 0
        writers = [FORKS.Process(target=add_up, args=(sqlite_url, ROUNDS)) for _ in range(WRITERS)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(30)
        assert [writer.exitcode for writer in writers] == [0] * WRITERS
        assert conn.execute(text("SELECT n FROM tally")).scalar_one() == 0
    with database.read() as conn:
        assert conn.execute(text("SELECT n FROM tally")).scalar_one() == WRITERS * ROUNDS
    database.dispose()
    check_file(sqlite_url)


@pytest.fixture
def site(redis_url: str, sqlite_url: str, tmp_path: Path) -> Iterator[Deployment]:
    with open_deployment(redis_url, sqlite_url, tmp_path) as opened:
        yield opened


def test_processes_that_are_killed_inside_transactions_leave_a_whole_file(
    site: Deployment, sqlite_url: str
) -> None:
    site.automation(site.hook("/one"))
    matcher = site.fleet.start("matcher", fault=f"{FaultPoint.MATCH_BEFORE_COMMIT}:kill9")
    site.publish(2)
    assert matcher.wait() == -signal.SIGKILL
    check_file(sqlite_url)
    site.fleet.start("matcher")
    worker = site.fleet.start("worker", fault=f"{FaultPoint.JOURNAL_BEFORE_COMMIT}:kill9")
    assert worker.wait() == -signal.SIGKILL
    check_file(sqlite_url)
    site.fleet.start("worker")
    site.await_ended(2, RESCUE_S)
    check_account(site, repeats=1)
    assert site.statuses() == ["SUCCEEDED"] * 2
    check_file(sqlite_url)


@contextmanager
def limited(*processes: Process) -> Iterator[None]:
    """Let processes write no file beyond a size, as on a disk that is full."""
    for process in processes:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (SMALL_BYTES, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        for process in processes:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


def test_processes_wait_for_a_disk_that_is_full_and_say_so(site: Deployment, sqlite_url: str) -> None:
    site.automation(site.hook("/one"))
    matcher, worker = site.fleet.start("matcher"), site.fleet.start("worker")
    site.publish(EVENTS)
    site.await_ended(EVENTS)
    with limited(matcher):
        site.publish()
        poll(lambda: matcher.has_logged("outage_began"))
        assert said(matcher, "outage_began")["reason"] in FULL
    site.await_ended(EVENTS + 1)
    with limited(worker):
        site.publish()
        poll(lambda: worker.has_logged("server_lost"))
        assert "sql" in said(worker, "server_lost")["server"]
        assert site.statuses().count("PENDING") == 1
    site.await_ended(EVENTS + 2)
    check_account(site)
    assert site.outcomes() == ["succeeded"] * (EVENTS + 2)
    assert matcher.is_alive()
    assert worker.is_alive()
    check_file(sqlite_url)


def said(process: Process, event: str) -> dict[str, str]:
    """Give the first line of a log with an event."""
    return next(line for line in process.lines() if line["event"] == event)


def test_a_file_that_has_no_room_left_is_an_outage_and_no_datas_fault(sqlite_url: str) -> None:
    database = open_database(sqlite_url, pool_size=1)
    with database.read() as conn:
        pages = conn.execute(text("PRAGMA page_count")).scalar_one()
        conn.execute(text(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(OperationalError, match="full") as caught, database.begin() as conn:
        conn.execute(text("CREATE TABLE filler AS SELECT zeroblob(1000000) AS filler"))
    assert is_outage(caught.value)
    database.dispose()
    check_file(sqlite_url)


def bow_to_modes() -> None:
    """Give up, for the program that follows, what lets root write where nobody may."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)
    libc.prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH)


def test_a_folder_that_cannot_be_written_is_told_in_one_line(sqlite_url: str, redis_url: str) -> None:
    folder = path_of(sqlite_url).parent
    environment = {**os.environ, "DATABASE_URL": sqlite_url, "REDIS_URL": redis_url}
    folder.chmod(0o500)
    try:
        done = subprocess.run(
            [*COMMAND, "automations", "list"],
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            preexec_fn=bow_to_modes,
        )
    finally:
        folder.chmod(0o700)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [READ_ONLY]
