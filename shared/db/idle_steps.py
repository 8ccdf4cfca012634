"""Steps of idle sequences as rows: inserted, locked and settled as sets (docs/idle-sequences.md).

They are locked after the subjects and messages of their conversations, and after pending executions. Each
change is a compare-and-set by the table of moves, and says which rows it changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.idle_rows import IDLE_COLUMNS, idle_step_row
from shared.db.sheet import Sheet, put, put_ids
from shared.db.sql import sql
from shared.db.types import write_instant
from shared.model.idle_steps import IDLE_MOVES, IdleStatus, IdleStepRow, IdleStop, check_idle_move

# A workspace and the id of a conversation in it.
ConversationKey = tuple[str, str]

LOCK: Final = sql(
    f"SELECT {IDLE_COLUMNS} FROM idle_steps r JOIN {{rows}} ON r.id = x.id ORDER BY r.id {{lock}}", id="text"
)


def lock_idle(conn: Connection, ids: Iterable[str]) -> dict[str, IdleStepRow]:
    """Lock steps in the order of their ids; give those that are there."""
    rows = put(conn, LOCK, ({"id": each} for each in sorted(set(ids))))
    return {row.id: idle_step_row(row) for row in rows}


LOCK_OPEN: Final = sql(
    f"""
    SELECT {IDLE_COLUMNS} FROM idle_steps r
    JOIN {{rows}} ON r.conversation_id = x.conversation_id AND r.workspace_id = x.workspace_id
    WHERE r.status IN ('pending', 'processing') ORDER BY r.id {{lock}}
    """,
    workspace_id="text",
    conversation_id="text",
)


def lock_open_idle(conn: Connection, conversations: Iterable[ConversationKey]) -> list[IdleStepRow]:
    """Lock what may still fire in these conversations; give it by id."""
    return [idle_step_row(row) for row in put(conn, LOCK_OPEN, _conversations(conversations))]


INSERT: Final = sql(
    """
    INSERT INTO idle_steps (id, workspace_id, conversation_id, sequence_id, rule, agent_id, channel_id,
        step_index, step_count, action, anchor_message_id, anchor_ms, anchor_seq, due_at, status, version,
        created_at, updated_at)
    SELECT id, workspace_id, conversation_id, sequence_id, rule, agent_id, channel_id, step_index, step_count,
        action, anchor_message_id, anchor_ms, anchor_seq, due_at, 'pending', 1, created_at, created_at
    FROM {rows} WHERE true ORDER BY workspace_id, conversation_id, anchor_ms, anchor_seq
    ON CONFLICT DO NOTHING RETURNING id
    """,
    id="text",
    workspace_id="text",
    conversation_id="text",
    sequence_id="text",
    rule="text",
    agent_id="text",
    channel_id="text",
    step_index="integer",
    step_count="integer",
    action="text",
    anchor_message_id="text",
    anchor_ms="bigint",
    anchor_seq="bigint",
    due_at="timestamptz",
    created_at="timestamptz",
)


def insert_idle(where: Connection | Sheet, rows: Iterable[IdleStepRow]) -> frozenset[str]:
    """Insert steps as PENDING; give the ids of the new ones.

    Left out is one that its message has already, and one of a conversation in which another one waits.
    """
    return put_ids(where, INSERT, map(_inserted, rows))


@dataclass(frozen=True, slots=True)
class Settlement:
    """Where a step goes, and why; `version` is the one that it must have, None for whichever it has."""

    id: str
    version: int | None
    status: IdleStatus
    reason: IdleStop | None = None


# A claim has a statement of its own, since it passes over what another sweep holds; so has its return.
_ENDS: Final = frozenset(IdleStatus) - {IdleStatus.PENDING, IdleStatus.PROCESSING}
_EDGES: Final = ", ".join(
    f"'{origin}>{to}'" for origin in IdleStatus for to in sorted(IDLE_MOVES[origin] & _ENDS)
)
SETTLE: Final = sql(
    f"""
    WITH k AS MATERIALIZED (
        SELECT r.id, x.status, x.reason FROM idle_steps r JOIN {{rows}} ON r.id = x.id
        WHERE (x.version IS NULL OR r.version = x.version) AND (r.status || '>' || x.status) IN ({_EDGES})
        ORDER BY r.id {{lock}})
    UPDATE idle_steps SET status = k.status, reason = k.reason, claimed_at = NULL, ended_at = :now,
        updated_at = :now, version = version + 1
    FROM k WHERE idle_steps.id = k.id RETURNING idle_steps.id AS id
    """,
    id="text",
    version="integer",
    status="text",
    reason="text",
)


def settle_idle(
    where: Connection | Sheet, settlements: Iterable[Settlement], now: datetime
) -> frozenset[str]:
    """End steps, each as the table of moves allows from where it stands; give the ids of those that moved.

    What has ended already stays as it is, so a second call finds nothing. On a sheet the answer is empty.
    """
    rows = (
        {"id": each.id, "version": each.version, "status": each.status, "reason": each.reason}
        for each in settlements
    )
    return put_ids(where, SETTLE, rows, now=write_instant(now))


SUPERSEDE: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM idle_steps r
        JOIN {rows} ON r.conversation_id = x.conversation_id AND r.workspace_id = x.workspace_id
        WHERE r.status = 'pending' ORDER BY r.id {lock})
    UPDATE idle_steps SET status = 'superseded', reason = 'superseded', ended_at = :now, updated_at = :now,
        version = version + 1
    FROM k WHERE idle_steps.id = k.id RETURNING idle_steps.id AS id
    """,
    workspace_id="text",
    conversation_id="text",
)


def supersede_waiting(
    where: Connection | Sheet, conversations: Iterable[ConversationKey], now: datetime
) -> frozenset[str]:
    """Move what waits in these conversations to superseded, whatever it is; give the ids."""
    return put_ids(where, SUPERSEDE, _conversations(conversations), now=write_instant(now))


REVIVE: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM idle_steps r
        JOIN {rows} ON r.workspace_id = x.workspace_id AND r.conversation_id = x.conversation_id
            AND r.anchor_message_id = x.anchor_message_id
        WHERE r.step_index = 0 AND r.run_id IS NULL AND (r.status || '') = 'stopped'
            AND r.reason IN ('conversation_closed', 'conversation_gone')
        ORDER BY r.id {lock})
    UPDATE idle_steps SET status = 'pending', reason = NULL, ended_at = NULL, updated_at = :now,
        version = version + 1
    FROM k WHERE idle_steps.id = k.id RETURNING idle_steps.id AS id
    """,
    workspace_id="text",
    conversation_id="text",
    anchor_message_id="text",
)


def revive_idle(conn: Connection, anchors: Iterable[tuple[str, str, str]], now: datetime) -> frozenset[str]:
    """Let first steps wait again that were stopped for a conversation's end which came before their message.

    An anchor is a workspace, a conversation and a message; the caller holds the conversation locked, and
    nothing waits in it.
    """
    check_idle_move(IdleStatus.STOPPED, IdleStatus.PENDING)
    names = ("workspace_id", "conversation_id", "anchor_message_id")
    rows = (dict(zip(names, key, strict=True)) for key in sorted(set(anchors)))
    return put_ids(conn, REVIVE, rows, now=write_instant(now))


def _conversations(keys: Iterable[ConversationKey]) -> Iterable[dict[str, str]]:
    return ({"workspace_id": at, "conversation_id": id_} for at, id_ in sorted(set(keys)))


def _inserted(row: IdleStepRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "workspace_id": row.workspace_id,
        "conversation_id": row.conversation_id,
        "sequence_id": row.sequence_id,
        "rule": row.rule,
        "agent_id": row.agent_id,
        "channel_id": row.channel_id,
        "step_index": row.step_index,
        "step_count": row.step_count,
        "action": row.action,
        "anchor_message_id": row.anchor.message_id,
        "anchor_ms": row.anchor.stamp[0],
        "anchor_seq": row.anchor.stamp[1],
        "due_at": write_instant(row.due_at),
        "created_at": write_instant(row.created_at),
    }
