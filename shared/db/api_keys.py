"""Keys of the API beyond their making: what there is, and their end."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import ALL, FIRST, sql
from shared.db.types import must_instant, read_instant, read_json, write_instant

COLUMNS: Final = "r.id, r.name, r.last4, r.scopes, r.created_at, r.last_used_at, r.revoked_at"
LIST_KEYS: Final = sql(
    f"""
    SELECT {COLUMNS} FROM api_keys r
    WHERE r.workspace_id = :workspace_id AND r.id > :after ORDER BY r.id LIMIT :most
    """
)
FIND_SUMMARY: Final = sql(
    f"SELECT {COLUMNS} FROM api_keys r WHERE r.id = :id AND r.workspace_id = :workspace_id"
)


@dataclass(frozen=True, slots=True)
class KeySummary:
    """A key as people see it."""

    id: str
    name: str
    last4: str
    scopes: tuple[str, ...]
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


def list_api_keys(
    conn: Connection, workspace_id: str, *, after: str = FIRST, most: int = ALL
) -> list[KeySummary]:
    """Give a workspace's keys, revoked ones too, oldest first, those behind the id `after`."""
    rows = LIST_KEYS.run(conn, {"workspace_id": workspace_id, "after": after, "most": most})
    return [_summary(row) for row in rows]


def find_key_by_id(conn: Connection, workspace_id: str, key_id: str) -> KeySummary | None:
    """Give one key of a workspace, revoked or not, or None."""
    row = FIND_SUMMARY.run(conn, {"workspace_id": workspace_id, "id": key_id}).first()
    return None if row is None else _summary(row)


def _summary(row: Row[Any]) -> KeySummary:
    return KeySummary(
        id=row.id,
        name=row.name,
        last4=row.last4,
        scopes=tuple(read_json(row.scopes)),
        created_at=must_instant(row.created_at),
        last_used_at=read_instant(row.last_used_at),
        revoked_at=read_instant(row.revoked_at),
    )


REVOKE_KEY: Final = sql(
    """
    UPDATE api_keys SET revoked_at = COALESCE(revoked_at, :now)
    WHERE id = :id AND workspace_id = :workspace_id
    """
)


def revoke_api_key(conn: Connection, workspace_id: str, key_id: str, *, now: datetime) -> bool:
    """End a key; False when the workspace has none with this id. A second call changes nothing."""
    values = {"id": key_id, "workspace_id": workspace_id, "now": write_instant(now)}
    return REVOKE_KEY.run(conn, values).rowcount == 1


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key as whoever was shown it finds it."""

    id: str
    workspace_id: str
    name: str
    last4: str
    scopes: tuple[str, ...]
    last_used_at: datetime | None
    revoked_at: datetime | None


FIND_KEY: Final = sql(
    """
    SELECT r.id, r.workspace_id, r.name, r.last4, r.scopes, r.last_used_at, r.revoked_at FROM api_keys r
    WHERE r.key_hash = :key_hash
    """
)


def find_api_key(conn: Connection, key_hash: str) -> FoundKey | None:
    """Give the key with this hash, of whatever workspace, revoked or not."""
    row = FIND_KEY.run(conn, {"key_hash": key_hash}).first()
    if row is None:
        return None
    return FoundKey(
        id=row.id,
        workspace_id=row.workspace_id,
        name=row.name,
        last4=row.last4,
        scopes=tuple(read_json(row.scopes)),
        last_used_at=read_instant(row.last_used_at),
        revoked_at=read_instant(row.revoked_at),
    )


NOTE_USE: Final = sql(
    """
    UPDATE api_keys SET last_used_at = :now
    WHERE id = :id AND (last_used_at IS NULL OR last_used_at <= :before)
    """
)


def note_use(conn: Connection, key_id: str, *, before: datetime, now: datetime) -> bool:
    """Note that a key was used, unless that was noted after `before`."""
    values = {"id": key_id, "before": write_instant(before), "now": write_instant(now)}
    return NOTE_USE.run(conn, values).rowcount == 1
