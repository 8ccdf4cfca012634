"""Rows that wait, written as a set, for tests of what comes due first."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

from shared.db.engine import Database
from shared.db.sql import sql

DUE: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
CHUNK: Final = 5_000
_NUMBERS: Final = count(1)

INSERT: Final = sql(
    """
    INSERT INTO pending_executions (id, workspace_id, automation_id, subject_type, subject_id, anchor,
        anchor_ms, anchor_seq, trigger_event, episode_key, started_at, due_at, status, version, armed_at,
        ended_at, created_at, updated_at)
    SELECT id, workspace_id, 'a', 'conversation', id, 'state', 1, 0, '{}', 'state:1-0', due_at, due_at,
        status, 1, due_at, ended_at, due_at, due_at FROM {rows}
    """,
    id="text",
    workspace_id="text",
    due_at="timestamptz",
    status="text",
    ended_at="timestamptz",
)


def waiting_id(number: int) -> str:
    """Give the id of a row by its number."""
    return f"00000000-0000-7000-8000-{number:012x}"


def add_waiting(
    database: Database, workspace_id: str, late_s: Iterable[int], status: str = "pending"
) -> list[str]:
    """Write rows that are so many seconds late at DUE, below zero early; give their ids."""
    rows = [_row(workspace_id, late, status) for late in late_s]
    for first in range(0, len(rows), CHUNK):
        with database.begin() as conn:
            INSERT.run_set(conn, rows[first : first + CHUNK])
    return [row["id"] for row in rows]


def _row(workspace_id: str, late_s: int, status: str) -> dict[str, Any]:
    due = (DUE - timedelta(seconds=late_s)).isoformat()
    return {
        "id": waiting_id(next(_NUMBERS)),
        "workspace_id": workspace_id,
        "due_at": due,
        "status": status,
        "ended_at": None if status == "pending" else due,
    }
