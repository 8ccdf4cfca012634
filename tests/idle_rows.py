"""Steps of idle sequences for tests of lists: one by one, or many as one set."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.sql import sql
from shared.db.tables_idle import IDLE_STEPS
from shared.ids import first_id
from tests.any_rows import add_row

DUE: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
CHUNK: Final = 5_000
AGENTS: Final = 20
CONVERSATIONS: Final = 500
STATES: Final = (
    ("pending", None),
    ("fired", None),
    ("stopped", "customer_replied"),
    ("superseded", "superseded"),
)

INSERT: Final = sql(
    """
    INSERT INTO idle_steps (id, workspace_id, conversation_id, sequence_id, rule, agent_id, step_index,
        step_count, action, anchor_message_id, anchor_ms, anchor_seq, due_at, status, reason, version,
        ended_at, created_at, updated_at)
    SELECT id, workspace_id, conversation_id, id, 'agent', agent_id, 0, 3, 'follow_up', id, 1, 0, due_at,
        status, reason, 1, ended_at, due_at, due_at FROM {rows}
    """,
    id="text",
    workspace_id="text",
    conversation_id="text",
    agent_id="text",
    due_at="timestamptz",
    status="text",
    reason="text",
    ended_at="timestamptz",
)
ANALYZE: Final = sql("ANALYZE idle_steps")


def add_step(conn: Connection, id_: str, **given: Any) -> str:
    """Write the first of three steps of agent `nora` in w1, which waits in a conversation named as itself."""
    values = {
        "id": id_,
        "workspace_id": "w1",
        "conversation_id": id_,
        "sequence_id": id_,
        "rule": "agent",
        "agent_id": "nora",
        "step_index": 0,
        "step_count": 3,
        "action": "follow_up",
        "anchor_message_id": "m1",
        "due_at": DUE,
        "status": "pending",
    }
    add_row(conn, IDLE_STEPS, **{**values, **given})
    return id_


def step_id(number: int) -> str:
    """Give the id of the row with this number: a higher number is a newer row."""
    return f"{first_id(DUE - timedelta(days=2))[:-12]}{number:012x}"


def due_at(number: int) -> datetime:
    """Give when the row with this number is due: neither in the order of the numbers nor each at its own."""
    return DUE + timedelta(seconds=number * 7_919 % 10_007)


def conversation_of(number: int) -> str:
    """Give the conversation of the row with this number; at most one row of each waits."""
    return f"c{number}" if state(number)[0] == "pending" else f"c{number % CONVERSATIONS}"


def state(number: int) -> tuple[str, str | None]:
    """Give the status of the row with this number, and why it was stopped."""
    return STATES[number // 40 % 4]


def fill_steps(database: Database, count: int) -> None:
    """Write rows of two workspaces, of each of twenty agents."""
    for first in range(0, count, CHUNK):
        with database.begin() as conn:
            INSERT.run_set(conn, [_row(number) for number in range(first, min(count, first + CHUNK))])
    with database.begin() as conn:
        ANALYZE.run(conn)


def _row(number: int) -> dict[str, Any]:
    status, reason = state(number)
    due = due_at(number).isoformat()
    return {
        "id": step_id(number),
        "workspace_id": f"w{number % 2}",
        "conversation_id": conversation_of(number),
        "agent_id": f"a{number // 2 % AGENTS}",
        "due_at": due,
        "status": status,
        "reason": reason,
        "ended_at": None if status == "pending" else due,
    }
