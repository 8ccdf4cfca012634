"""Pending executions for tests of lists: one by one, or many as one set."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.sql import sql
from shared.db.tables_pending import PENDING_EXECUTIONS
from shared.ids import first_id
from tests.any_rows import add_row

DUE: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
CHUNK: Final = 5_000
AUTOMATIONS: Final = 20
SUBJECTS: Final = 500
STATES: Final = (
    ("pending", None),
    ("executed", None),
    ("skipped", "conditions_changed"),
    ("skipped", "expired"),
)
EVENT: Final = {"entryId": "1-0", "type": "conversation.updated", "payload": {"token": "tops3cret", "n": 1}}

INSERT: Final = sql(
    """
    INSERT INTO pending_executions (id, workspace_id, automation_id, subject_type, subject_id, anchor,
        anchor_ms, anchor_seq, trigger_event, episode_key, started_at, due_at, status, skip_reason, version,
        armed_at, ended_at, created_at, updated_at)
    SELECT id, workspace_id, automation_id, 'conversation', subject_id, 'awaiting_agent', 1, 0, '{}',
        episode_key, due_at, due_at, status, skip_reason, 1, due_at, ended_at, due_at, due_at FROM {rows}
    """,
    id="text",
    workspace_id="text",
    automation_id="text",
    subject_id="text",
    episode_key="text",
    due_at="timestamptz",
    status="text",
    skip_reason="text",
    ended_at="timestamptz",
)
ANALYZE: Final = sql("ANALYZE pending_executions")


def add_pending(conn: Connection, id_: str, automation_id: str, **given: Any) -> str:
    """Write one of w1 that waits for a conversation named as itself; give its id."""
    values = {
        "id": id_,
        "workspace_id": "w1",
        "automation_id": automation_id,
        "subject_type": "conversation",
        "subject_id": id_,
        "anchor": "state",
        "episode_key": "state:1-0",
        "trigger_event": EVENT,
        "due_at": DUE,
        "status": "pending",
    }
    add_row(conn, PENDING_EXECUTIONS, **{**values, **given})
    return id_


def pending_id(number: int) -> str:
    """Give the id of the row with this number: a higher number is a newer row."""
    return f"{first_id(DUE - timedelta(days=2))[:-12]}{number:012x}"


def due_at(number: int) -> datetime:
    """Give when the row with this number is due: neither in the order of the numbers nor each at its own."""
    return DUE + timedelta(seconds=number * 7_919 % 10_007)


def state(number: int) -> tuple[str, str | None]:
    """Give the status of the row with this number, and why it was skipped."""
    return STATES[number // 40 % 4]


def fill_pending(database: Database, count: int) -> None:
    """Write rows of two workspaces, in each of twenty automations."""
    for first in range(0, count, CHUNK):
        with database.begin() as conn:
            INSERT.run_set(conn, [_row(number) for number in range(first, min(count, first + CHUNK))])
    with database.begin() as conn:
        ANALYZE.run(conn)


def _row(number: int) -> dict[str, Any]:
    status, reason = state(number)
    due = due_at(number).isoformat()
    return {
        "id": pending_id(number),
        "workspace_id": f"w{number % 2}",
        "automation_id": f"a{number % 2}-{number // 2 % AUTOMATIONS}",
        "subject_id": f"c{number % SUBJECTS}",
        "episode_key": f"awaiting_agent:{number}",
        "due_at": due,
        "status": status,
        "skip_reason": reason,
        "ended_at": None if status == "pending" else due,
    }
