"""What the messages of conversations say about idle steps: asked for a set of conversations at once."""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from shared.db.idle_steps import ConversationKey
from shared.db.messages import find_messages
from shared.db.sheet import put
from shared.db.sql import sql
from shared.model.messages import Message

# Each takes one message from the end of its conversation's, which stand in the index by stamp.
NEWEST: Final = sql(
    """
    SELECT x.workspace_id, (
        SELECT m.id FROM messages m
        WHERE m.workspace_id = x.workspace_id AND m.conversation_id = x.conversation_id
            AND m.private = 0 AND m.auto_submitted = 0 AND m.sender_type <> 'automation'
        ORDER BY m.stamp_ms DESC, m.stamp_seq DESC LIMIT 1) AS id
    FROM {rows}
    """,
    workspace_id="text",
    conversation_id="text",
)


def newest_counting(
    conn: Connection, conversations: Iterable[ConversationKey]
) -> dict[ConversationKey, Message]:
    """Give the newest message of each conversation that counts: public, and of no machine.

    What no message is stored of is left out.
    """
    asked = ({"workspace_id": at, "conversation_id": id_} for at, id_ in sorted(set(conversations)))
    ids = [(row.workspace_id, row.id) for row in put(conn, NEWEST, asked) if row.id is not None]
    return {(each.workspace_id, each.conversation_id): each for each in find_messages(conn, ids).values()}


WITH_HOLDERS: Final = sql(
    """
    SELECT x.workspace_id FROM {rows}
    WHERE EXISTS (SELECT 1 FROM ai_agents r WHERE r.workspace_id = x.workspace_id AND r.deleted_at IS NULL)
        OR EXISTS (SELECT 1 FROM channels r WHERE r.workspace_id = x.workspace_id AND r.enabled = 1)
    """,
    workspace_id="text",
)


def workspaces_with_holders(conn: Connection, workspace_ids: Iterable[str]) -> frozenset[str]:
    """Give those of the workspaces in which an AI agent or a channel might have an idle rule."""
    rows = put(conn, WITH_HOLDERS, ({"workspace_id": each} for each in sorted(set(workspace_ids))))
    return frozenset(row.workspace_id for row in rows)
