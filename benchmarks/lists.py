"""What a page of a list costs, whatever is over: with a thousand finished runs and with a million.

The runs are written by one statement, since nothing of how they came about is measured: two workspaces with
five automations each, so that every page is full; of ten runs one is FAILED, the others SUCCEEDED.
"""

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sqlalchemy import text

from benchmarks.figures import percentile
from benchmarks.sites import Backend, Servers
from shared.db.engine import Database, open_database, sqlite_file
from shared.db.run_lists import RunQuery, page_of_runs
from shared.model.moves import RunStatus

FEW: Final = 1_000
MANY: Final = 1_000_000
PAGE: Final = 50
READS: Final = 200
WORKSPACE: Final = "ws_1"

LISTS: Final[Mapping[str, RunQuery]] = MappingProxyType(
    {
        "of one automation": RunQuery(WORKSPACE, PAGE, automation_id="ws_1-3"),
        "FAILED": RunQuery(WORKSPACE, PAGE, RunStatus.FAILED),
        "of the workspace": RunQuery(WORKSPACE, PAGE),
    }
)

_INSERT: Final = """
    INSERT INTO automation_runs (id, workspace_id, automation_id, automation_version, source, source_id,
        trigger_type, status, input, depth, root_run_id, retry_count, failures, crash_count, lease, queue,
        enqueued_at, created_at, started_at, ended_at)
    SELECT m.id, m.workspace, m.workspace || '-' || CAST(m.n / 2 % 5 AS text), 1, 'event', m.id,
        'EVENT', CASE WHEN m.n / 2 % 10 = 3 THEN 'FAILED' ELSE 'SUCCEEDED' END,
        '{}', 0, m.id, 0, 0, 0, 1, 'main', :at, :at, :at, :at
    FROM (SELECT s.n AS n, 'ws_' || CAST(s.n % 2 AS text) AS workspace, {id} AS id FROM ({numbers}) s) m
"""
_DIALECTS: Final = MappingProxyType(
    {
        "postgresql": (
            "'019c0000-0000-7000-8000-' || lpad(to_hex(s.n), 12, '0')",
            "SELECT generate_series(0, :count - 1) AS n",
        ),
        "sqlite": (
            "'019c0000-0000-7000-8000-' || printf('%012x', s.n)",
            "WITH RECURSIVE up(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up LIMIT :count) SELECT n FROM up",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class PageTimes:
    """How long pages took, in milliseconds, by the list's name: the 95th percentile."""

    p95_ms: Mapping[str, float]


def measure_lists(servers: Servers, backend: Backend, count: int) -> PageTimes:
    """Read the newest page of each list over and over, with so many finished runs."""
    site = servers.fresh(backend)
    database = open_database(site.database_url)
    fill(database, count)
    _settle(site.database_url)
    times = {name: [_read_ms(database, query) for _ in range(READS)] for name, query in LISTS.items()}
    found = {name: percentile(values, 95) for name, values in times.items()}
    database.dispose()
    return PageTimes(MappingProxyType(found))


def fill(database: Database, count: int) -> None:
    """Write finished runs as one set."""
    run_id, numbers = _DIALECTS[database.dialect]
    statement = text(_INSERT.replace("{id}", run_id).replace("{numbers}", numbers))
    with database.begin() as conn:
        conn.execute(statement, {"count": count, "at": "2026-03-01T12:00:00+00:00"})
    with database.begin() as conn:
        conn.execute(text("ANALYZE automation_runs"))


def _settle(database_url: str) -> None:
    """Move what was written from SQLite's log into its file, where it would be after a while."""
    file = sqlite_file(database_url)
    if file is not None:
        with closing(sqlite3.connect(file)) as raw:
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _read_ms(database: Database, query: RunQuery) -> float:
    begun = time.perf_counter()
    with database.read() as conn:
        page_of_runs(conn, query)
    return (time.perf_counter() - begun) * 1000
