"""Rows of delayed executions follow their episode: to a newer message, another beginning, back to life."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.pending import episode_columns
from shared.db.sheet import put_ids
from shared.db.sql import sql
from shared.db.types import write_instant
from shared.model.pending import Episode, PendingStatus, check_pending_move


@dataclass(frozen=True, slots=True)
class Turn:
    """A row, as it was read, and the episode that it is to stand for, with the event and the hour of it."""

    id: str
    version: int
    episode: Episode
    trigger_event: Mapping[str, Any]
    due_at: datetime


_FOLLOW: Final = """
    WITH k AS (SELECT r.id, x.message_id, x.anchor_ms, x.anchor_seq, x.started_at, x.trigger_event, x.due_at
        FROM pending_executions r JOIN {rows} ON r.id = x.id AND r.version = x.version
        WHERE {stands} ORDER BY r.id {lock})
    UPDATE pending_executions SET message_id = k.message_id, anchor_ms = k.anchor_ms,
        anchor_seq = k.anchor_seq, started_at = k.started_at, trigger_event = k.trigger_event,
        due_at = k.due_at, status = 'pending', skip_reason = NULL, run_id = NULL, ended_at = NULL,
        armed_at = :now, version = version + 1, updated_at = :now
    FROM k WHERE pending_executions.id = k.id RETURNING pending_executions.id AS id
    """
_TURN: Final = {
    "id": "text",
    "version": "integer",
    "trigger_event": "jsonb",
    "due_at": "timestamptz",
    "anchor": "text",
    "message_id": "text",
    "anchor_ms": "bigint",
    "anchor_seq": "bigint",
    "episode_key": "text",
    "started_at": "timestamptz",
}

MOVE: Final = sql(_FOLLOW.replace("{stands}", "r.ended_at IS NULL AND (r.status || '') = 'pending'"), **_TURN)


def move_pending(conn: Connection, turns: Iterable[Turn], *, now: datetime) -> frozenset[str]:
    """Hang rows that are pending on a newer message of the same episode; give the ids that moved."""
    return put_ids(conn, MOVE, map(_named, turns), now=write_instant(now))


REVIVE: Final = sql(
    _FOLLOW.replace("{stands}", "r.ended_at IS NOT NULL AND (r.status || '') = 'skipped'"), **_TURN
)


def revive_pending(conn: Connection, turns: Iterable[Turn], *, now: datetime) -> frozenset[str]:
    """Let rows wait again whose episode had ended without a run, and goes on after all; give the ids."""
    check_pending_move(PendingStatus.SKIPPED, PendingStatus.PENDING)
    return put_ids(conn, REVIVE, map(_named, turns), now=write_instant(now))


REOPEN: Final = sql(
    """
    WITH k AS (SELECT r.id FROM pending_executions r JOIN {rows} ON r.id = x.id AND r.version = x.version
        WHERE r.ended_at IS NOT NULL ORDER BY r.id {lock})
    UPDATE pending_executions SET ended_at = NULL, version = version + 1, updated_at = :now
    FROM k WHERE pending_executions.id = k.id RETURNING pending_executions.id AS id
    """,
    id="text",
    version="integer",
)


def reopen_pending(conn: Connection, rows: Iterable[tuple[str, int]], *, now: datetime) -> frozenset[str]:
    """Let rows by id and version, which are spent, stand for their episode again; give the ids."""
    wanted = ({"id": id_, "version": version} for id_, version in rows)
    return put_ids(conn, REOPEN, wanted, now=write_instant(now))


REKEY: Final = sql(
    """
    WITH k AS (SELECT r.id, x.episode_key, x.started_at, x.anchor_ms, x.anchor_seq FROM pending_executions r
        JOIN {rows} ON r.id = x.id AND r.version = x.version WHERE r.ended_at IS NULL ORDER BY r.id {lock})
    UPDATE pending_executions SET episode_key = k.episode_key, started_at = k.started_at,
        anchor_ms = k.anchor_ms, anchor_seq = k.anchor_seq, version = version + 1, updated_at = :now
    FROM k WHERE pending_executions.id = k.id RETURNING pending_executions.id AS id
    """,
    id="text",
    version="integer",
    episode_key="text",
    started_at="timestamptz",
    anchor_ms="bigint",
    anchor_seq="bigint",
)


def rekey_pending(
    conn: Connection, rows: Iterable[tuple[str, int, Episode]], *, now: datetime
) -> frozenset[str]:
    """Tell spent rows, by id and version, that their episode began earlier than was known; give the ids."""
    wanted = ({"id": id_, "version": version, **episode_columns(episode)} for id_, version, episode in rows)
    return put_ids(conn, REKEY, wanted, now=write_instant(now))


def _named(turn: Turn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "version": turn.version,
        **episode_columns(turn.episode),
        "trigger_event": turn.trigger_event,
        "due_at": write_instant(turn.due_at),
    }
