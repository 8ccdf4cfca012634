"""What the messages of a conversation say of who waits for whom: asked for a set of messages at once."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sheet import put
from shared.db.sql import sql
from shared.db.types import read_instant
from shared.model.stamps import Stamp
from shared.rules.talk import Talk


@dataclass(frozen=True, slots=True)
class TalkAsk:
    """One message's view: its conversation, its stamp, and when the conversation was last resolved."""

    workspace_id: str
    conversation_id: str
    anchor: Stamp
    resolved: Stamp | None


_PERSONS: Final = "m.direction = 'incoming' AND m.auto_submitted = 0 AND m.private = 0"
_HERE: Final = "m.workspace_id = {of}.workspace_id AND m.conversation_id = {of}.conversation_id"
_NEWEST: Final = "ORDER BY m.stamp_ms DESC, m.stamp_seq DESC LIMIT 1"

# Each part takes one row from an end of a conversation's messages, which stand in the index by stamp.
READ_TALK: Final = sql(
    f"""
    SELECT c.n, c.cleared_ms, c.cleared_seq, c.before_id, i.stamp_ms AS newest_ms, i.stamp_seq AS newest_seq,
        w.stamp_ms AS waiting_ms, w.stamp_seq AS waiting_seq, w.created_at AS waiting_since
    FROM (
        SELECT a.n, a.workspace_id, a.before_id, a.newest_id, a.cleared_ms, a.cleared_seq, (
            SELECT m.id FROM messages m WHERE {_HERE.format(of="a")} AND {_PERSONS}
                AND (m.stamp_ms, m.stamp_seq) > (a.cleared_ms, a.cleared_seq)
            ORDER BY m.stamp_ms, m.stamp_seq LIMIT 1) AS waiting_id
        FROM (
            SELECT f.n, f.workspace_id, f.conversation_id, f.before_id, f.newest_id,
                CASE WHEN o.id IS NOT NULL AND (o.stamp_ms, o.stamp_seq) > (f.resolved_ms, f.resolved_seq)
                    THEN o.stamp_ms ELSE f.resolved_ms END AS cleared_ms,
                CASE WHEN o.id IS NOT NULL AND (o.stamp_ms, o.stamp_seq) > (f.resolved_ms, f.resolved_seq)
                    THEN o.stamp_seq ELSE f.resolved_seq END AS cleared_seq
            FROM (
                SELECT x.n, x.workspace_id, x.conversation_id, x.resolved_ms, x.resolved_seq,
                    (SELECT m.id FROM messages m WHERE {_HERE.format(of="x")} AND m.direction = 'outgoing'
                        AND m.sender_type IN ('agent', 'bot') AND m.private = 0 AND m.auto_submitted = 0
                    {_NEWEST}) AS reply_id,
                    (SELECT m.id FROM messages m WHERE {_HERE.format(of="x")} AND {_PERSONS}
                    {_NEWEST}) AS newest_id,
                    (SELECT m.id FROM messages m WHERE {_HERE.format(of="x")} AND {_PERSONS}
                        AND (m.stamp_ms, m.stamp_seq) < (x.anchor_ms, x.anchor_seq)
                    {_NEWEST}) AS before_id
                FROM {{rows}}
            ) f LEFT JOIN messages o ON o.workspace_id = f.workspace_id AND o.id = f.reply_id
        ) a
    ) c
    LEFT JOIN messages i ON i.workspace_id = c.workspace_id AND i.id = c.newest_id
    LEFT JOIN messages w ON w.workspace_id = c.workspace_id AND w.id = c.waiting_id
    """,
    n="integer",
    workspace_id="text",
    conversation_id="text",
    anchor_ms="bigint",
    anchor_seq="bigint",
    resolved_ms="bigint",
    resolved_seq="bigint",
)
_NEVER: Final = (-1, -1)


def read_talk(conn: Connection, asks: Iterable[TalkAsk]) -> dict[TalkAsk, Talk]:
    """Say for each message how the talk around it stands, as far as messages are stored."""
    asked = list(dict.fromkeys(asks))
    rows = put(conn, READ_TALK, (_named(at, ask) for at, ask in enumerate(asked)))
    return {asked[row.n]: _talk(row) for row in rows}


def _named(at: int, ask: TalkAsk) -> dict[str, Any]:
    resolved = ask.resolved or _NEVER
    return {
        "n": at,
        "workspace_id": ask.workspace_id,
        "conversation_id": ask.conversation_id,
        "anchor_ms": ask.anchor[0],
        "anchor_seq": ask.anchor[1],
        "resolved_ms": resolved[0],
        "resolved_seq": resolved[1],
    }


def _talk(row: Row[Any]) -> Talk:
    return Talk(
        cleared=_stamp(row.cleared_ms, row.cleared_seq),
        waiting_stamp=_stamp(row.waiting_ms, row.waiting_seq),
        waiting_since=read_instant(row.waiting_since),
        newest_incoming=_stamp(row.newest_ms, row.newest_seq),
        incoming_before=row.before_id,
    )


def _stamp(ms: int | None, seq: int | None) -> Stamp | None:
    return None if ms is None or seq is None or ms < 0 else (ms, seq)
