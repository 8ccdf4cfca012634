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


_PUBLIC: Final = "m.auto_submitted = 0 AND m.private = 0"
_PERSONS: Final = f"m.direction = 'incoming' AND {_PUBLIC}"
_REPLIES: Final = f"m.direction = 'outgoing' AND m.sender_type IN ('agent', 'bot') AND {_PUBLIC}"
_NEWEST: Final = "ORDER BY m.stamp_ms DESC, m.stamp_seq DESC LIMIT 1"


def _in_talk(of: str) -> str:
    return f"m.workspace_id = {of}.workspace_id AND m.conversation_id = {of}.conversation_id"


def _of_message(column: str, of: str, id_: str) -> str:
    """Read a column of one message by its key. A join might be made by reading all of them."""
    where = f"m.workspace_id = {of}.workspace_id AND m.id = {of}.{id_}"
    return f"(SELECT m.{column} FROM messages m WHERE {where})"


# Each part takes one message from an end of its conversation's, which stand in the index by stamp.
READ_TALK: Final = sql(
    f"""
    WITH f AS MATERIALIZED (
        SELECT x.n, x.workspace_id, x.conversation_id, x.resolved_ms, x.resolved_seq,
            (SELECT m.id FROM messages m WHERE {_in_talk("x")} AND {_REPLIES} {_NEWEST}) AS reply_id,
            (SELECT m.id FROM messages m WHERE {_in_talk("x")} AND {_PERSONS} {_NEWEST}) AS newest_id,
            (SELECT m.id FROM messages m WHERE {_in_talk("x")} AND {_PERSONS}
                AND (m.stamp_ms, m.stamp_seq) < (x.anchor_ms, x.anchor_seq) {_NEWEST}) AS before_id
        FROM {{rows}}
    ), o AS MATERIALIZED (
        SELECT f.*, {_of_message("stamp_ms", "f", "reply_id")} AS reply_ms,
            {_of_message("stamp_seq", "f", "reply_id")} AS reply_seq FROM f
    ), a AS MATERIALIZED (
        SELECT o.n, o.workspace_id, o.conversation_id, o.newest_id, o.before_id,
            CASE WHEN (o.reply_ms, o.reply_seq) > (o.resolved_ms, o.resolved_seq)
                THEN o.reply_ms ELSE o.resolved_ms END AS cleared_ms,
            CASE WHEN (o.reply_ms, o.reply_seq) > (o.resolved_ms, o.resolved_seq)
                THEN o.reply_seq ELSE o.resolved_seq END AS cleared_seq
        FROM o
    ), c AS MATERIALIZED (
        SELECT a.*, (SELECT m.id FROM messages m WHERE {_in_talk("a")} AND {_PERSONS}
            AND (m.stamp_ms, m.stamp_seq) > (a.cleared_ms, a.cleared_seq)
            ORDER BY m.stamp_ms, m.stamp_seq LIMIT 1) AS waiting_id
        FROM a
    )
    SELECT c.n, c.cleared_ms, c.cleared_seq, c.before_id,
        {_of_message("stamp_ms", "c", "newest_id")} AS newest_ms,
        {_of_message("stamp_seq", "c", "newest_id")} AS newest_seq,
        {_of_message("stamp_ms", "c", "waiting_id")} AS waiting_ms,
        {_of_message("stamp_seq", "c", "waiting_id")} AS waiting_seq,
        {_of_message("created_at", "c", "waiting_id")} AS waiting_since
    FROM c
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
