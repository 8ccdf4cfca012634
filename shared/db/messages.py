"""The messages of conversations, as events told them or automations wrote them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sheet import Sheet, put
from shared.db.sql import sql
from shared.db.types import must_instant, read_json, write_instant
from shared.model.messages import Direction, Message, SenderType

MessageKey = tuple[str, str]

INSERT_MESSAGES: Final = sql(
    """
    INSERT INTO messages (workspace_id, id, conversation_id, direction, sender_type, sender_id, agent_id,
        content, private, auto_submitted, stamp_ms, stamp_seq, run_id, created_at, parameters)
    SELECT workspace_id, id, conversation_id, direction, sender_type, sender_id, agent_id,
        content, private, auto_submitted, stamp_ms, stamp_seq, run_id, created_at,
        parameters FROM {rows}
    WHERE true ORDER BY workspace_id, id
    ON CONFLICT (workspace_id, id) DO NOTHING RETURNING workspace_id, id
    """,
    workspace_id="text",
    id="text",
    conversation_id="text",
    direction="text",
    sender_type="text",
    sender_id="text",
    agent_id="text",
    content="text",
    private="integer",
    auto_submitted="integer",
    stamp_ms="bigint",
    stamp_seq="bigint",
    run_id="text",
    created_at="timestamptz",
    parameters="jsonb",
)


def insert_messages(where: Connection | Sheet, messages: Iterable[Message]) -> frozenset[MessageKey]:
    """Write messages that are not there yet, and give the workspace and id of each that is new.

    A message that is there stays as it is. On a sheet nothing is known before it is written.
    """
    rows = put(where, INSERT_MESSAGES, map(_row, messages))
    return frozenset((row.workspace_id, row.id) for row in rows)


FIND_MESSAGES: Final = sql(
    """
    SELECT r.workspace_id, r.id, r.conversation_id, r.direction, r.sender_type, r.sender_id, r.agent_id,
        r.content, r.private, r.auto_submitted, r.stamp_ms, r.stamp_seq, r.run_id, r.created_at,
        r.parameters
    FROM messages r JOIN {rows} ON r.workspace_id = x.workspace_id AND r.id = x.id
    """,
    workspace_id="text",
    id="text",
)


def find_messages(conn: Connection, keys: Iterable[MessageKey]) -> dict[MessageKey, Message]:
    """Give those of the messages that are there."""
    wanted = ({"workspace_id": workspace_id, "id": id_} for workspace_id, id_ in sorted(set(keys)))
    found = map(_message, put(conn, FIND_MESSAGES, wanted))
    return {(each.workspace_id, each.id): each for each in found}


def _message(row: Row[Any]) -> Message:
    return Message(
        workspace_id=row.workspace_id,
        id=row.id,
        conversation_id=row.conversation_id,
        direction=Direction(row.direction),
        sender_type=SenderType(row.sender_type),
        sender_id=row.sender_id,
        agent_id=row.agent_id,
        content=row.content,
        private=bool(row.private),
        auto_submitted=bool(row.auto_submitted),
        stamp=(row.stamp_ms, row.stamp_seq),
        run_id=row.run_id,
        created_at=must_instant(row.created_at),
        parameters=read_json(row.parameters),
    )


def _row(message: Message) -> Mapping[str, Any]:
    return {
        "workspace_id": message.workspace_id,
        "id": message.id,
        "conversation_id": message.conversation_id,
        "direction": message.direction,
        "sender_type": message.sender_type,
        "sender_id": message.sender_id,
        "agent_id": message.agent_id,
        "content": message.content,
        "private": int(message.private),
        "auto_submitted": int(message.auto_submitted),
        "stamp_ms": message.stamp[0],
        "stamp_seq": message.stamp[1],
        "run_id": message.run_id,
        "created_at": write_instant(message.created_at),
        "parameters": message.parameters,
    }
