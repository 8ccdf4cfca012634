"""Many finished runs and log lines, written as sets, for tests of lists: what is over must not slow them."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from shared.db.engine import Database
from shared.db.sql import sql
from shared.ids import first_id

NEWEST: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
CHUNK: Final = 5_000
AUTOMATIONS: Final = 20

INSERT: Final = sql(
    """
    INSERT INTO automation_runs (id, workspace_id, automation_id, automation_version, source, source_id,
        trigger_type, subject_type, subject_id, status, input, depth, root_run_id, retry_count,
        failures, crash_count, lease, queue, enqueued_at, created_at, started_at, ended_at)
    SELECT id, workspace_id, automation_id, 1, 'event', id, trigger_type, 'record', subject_id, status, '{}',
        0, id, 0, 0, 0, 1, 'main', at, at, at, at
    FROM {rows}
    """,
    id="text",
    workspace_id="text",
    automation_id="text",
    trigger_type="text",
    subject_id="text",
    status="text",
    at="timestamptz",
)
ANALYZE: Final = sql("ANALYZE automation_runs")
INSERT_LINES: Final = sql(
    """
    INSERT INTO automation_logs (xid, workspace_id, automation_id, run_id, level, message, at)
    SELECT {xid}, workspace_id, automation_id, run_id, level, message, at FROM {rows}
    """,
    workspace_id="text",
    automation_id="text",
    run_id="text",
    level="text",
    message="text",
    at="timestamptz",
)
ANALYZE_LINES: Final = sql("ANALYZE automation_logs")


def run_id(number: int) -> str:
    """Give the id of the run with this number: a higher number is a newer run, a second apart."""
    return f"{first_id(made_at(number))[:-12]}{number:012x}"


def made_at(number: int) -> datetime:
    """Give the instant at which the run of this number was made."""
    return NEWEST - timedelta(days=30) + timedelta(seconds=number)


def fill(database: Database, count: int, workspaces: int = 2) -> None:
    """Write runs that have ended: in each workspace of twenty automations, one of a thousand FAILED."""
    for first in range(0, count, CHUNK):
        with database.begin() as conn:
            numbers = range(first, min(count, first + CHUNK))
            INSERT.run_set(conn, [_row(number, workspaces) for number in numbers])
    with database.begin() as conn:
        ANALYZE.run(conn)


def _row(number: int, workspaces: int) -> dict[str, Any]:
    workspace = number % workspaces
    return {
        "id": run_id(number),
        "workspace_id": f"w{workspace}",
        "automation_id": f"a{workspace}-{number // workspaces % AUTOMATIONS}",
        "trigger_type": "MANUAL" if number % 10_000 < workspaces else "EVENT",
        "subject_id": f"r{number % 5_000}",
        "status": "FAILED" if number % 1_000 < workspaces else "SUCCEEDED",
        "at": made_at(number).isoformat(),
    }


def fill_log(database: Database, count: int) -> None:
    """Write log lines of w0 and w1 in turn, a second apart; every hundredth is a warning."""
    for first in range(0, count, CHUNK):
        with database.begin() as conn:
            INSERT_LINES.run_set(conn, [_line(number) for number in range(first, min(count, first + CHUNK))])
    with database.begin() as conn:
        ANALYZE_LINES.run(conn)


def _line(number: int) -> dict[str, Any]:
    workspace = number % 2
    return {
        "workspace_id": f"w{workspace}",
        "automation_id": f"a{workspace}-{number // 2 % AUTOMATIONS}",
        "run_id": f"run-{number // 8}",
        "level": "warning" if number % 100 < 2 else "info",
        "message": f"line {number}",
        "at": made_at(number).isoformat(),
    }
