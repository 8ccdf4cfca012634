"""What runs of idle steps ask for: their steps, and the messages that those have left."""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from shared.db.idle_rows import IDLE_COLUMNS, idle_step_row
from shared.db.messages import find_messages
from shared.db.sheet import put
from shared.db.sql import sql
from shared.model.idle_steps import IdleStepRow
from shared.model.messages import Message
from shared.model.runs import RunSource

MARK: Final = "idle_rule"

FIND: Final = sql(f"SELECT {IDLE_COLUMNS} FROM idle_steps r JOIN {{rows}} ON r.id = x.id", id="text")


def find_idle(conn: Connection, ids: Iterable[str]) -> dict[str, IdleStepRow]:
    """Give those of the steps that are there."""
    rows = put(conn, FIND, ({"id": each} for each in sorted(set(ids))))
    return {row.id: idle_step_row(row) for row in rows}


STEPS_OF: Final = sql(
    f"""
    SELECT r.id, r.source_id FROM automation_runs r JOIN {{rows}} ON r.id = x.id
    WHERE r.source = '{RunSource.IDLE_STEP}'
    """,
    id="text",
)


def steps_of_runs(conn: Connection, run_ids: Iterable[str]) -> dict[str, str]:
    """Give the step's id of each of these runs that is of one, by the run's."""
    rows = put(conn, STEPS_OF, ({"id": each} for each in sorted(set(run_ids))))
    return {row.id: row.source_id for row in rows}


SAID_SINCE: Final = sql(
    """
    SELECT x.id AS step_id, r.workspace_id, r.id FROM messages r
    JOIN {rows} ON r.workspace_id = x.workspace_id AND r.conversation_id = x.conversation_id
    WHERE (r.stamp_ms > x.anchor_ms OR (r.stamp_ms = x.anchor_ms AND r.stamp_seq > x.anchor_seq))
        AND r.parameters IS NOT NULL
    """,
    id="text",
    workspace_id="text",
    conversation_id="text",
    anchor_ms="bigint",
    anchor_seq="bigint",
)


def find_said(conn: Connection, rows: Iterable[IdleStepRow]) -> dict[str, Message]:
    """Give, by the step's id, the message that a step has left already since its anchor."""
    by_id = {row.id: row for row in rows}
    asked = (
        {
            "id": row.id,
            "workspace_id": row.workspace_id,
            "conversation_id": row.conversation_id,
            "anchor_ms": row.anchor.stamp[0],
            "anchor_seq": row.anchor.stamp[1],
        }
        for row in by_id.values()
    )
    keys = [(row.step_id, (row.workspace_id, row.id)) for row in put(conn, SAID_SINCE, asked)]
    messages = find_messages(conn, (key for _, key in keys)) if keys else {}
    said = ((step_id, messages[key]) for step_id, key in keys)
    return {step_id: message for step_id, message in said if _is_of(message, by_id[step_id])}


def _is_of(message: Message, row: IdleStepRow) -> bool:
    told = (message.parameters or {}).get(MARK, {})
    return (told.get("step_index"), told.get("sequence_id")) == (row.step_index, row.sequence_id)
