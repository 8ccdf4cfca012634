"""Flags of workspaces: what is turned on or off by name; one that was never set is as its reader wants it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, Row

from shared.db.sql import ALL, FIRST, sql
from shared.db.types import must_instant, write_instant
from shared.model.flag_states import FlagState


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag that was set, and when."""

    name: str
    state: FlagState
    updated_at: datetime


FIND_FLAG: Final = sql(
    """
    SELECT r.name, r.enabled, r.updated_at FROM flags r
    WHERE r.workspace_id = :workspace_id AND r.name = :name
    """
)


def is_flag_on(conn: Connection, workspace_id: str, name: str, default: FlagState) -> bool:
    """Tell whether a workspace has a flag on; `default` is what one says that was never set."""
    row = FIND_FLAG.run(conn, {"workspace_id": workspace_id, "name": name}).first()
    return (default if row is None else _flag(row).state) is FlagState.ON


LOCK_FLAG: Final = sql(
    """
    SELECT r.name, r.enabled, r.updated_at FROM flags r
    WHERE r.workspace_id = :workspace_id AND r.name = :name {lock}
    """
)


def lock_flag(conn: Connection, workspace_id: str, name: str) -> Flag | None:
    """Give a flag, locked until the transaction ends; None where it was never set."""
    row = LOCK_FLAG.run(conn, {"workspace_id": workspace_id, "name": name}).first()
    return None if row is None else _flag(row)


PUT_FLAG: Final = sql(
    """
    INSERT INTO flags (workspace_id, name, enabled, updated_at) VALUES (:workspace_id, :name, :enabled, :now)
    ON CONFLICT (workspace_id, name) DO UPDATE
    SET enabled = excluded.enabled, updated_at = excluded.updated_at
    """
)


def put_flag(conn: Connection, workspace_id: str, flag: Flag) -> None:
    """Store a flag, over what it said before."""
    values = {
        "workspace_id": workspace_id,
        "name": flag.name,
        "enabled": int(flag.state is FlagState.ON),
        "now": write_instant(flag.updated_at),
    }
    PUT_FLAG.run(conn, values)


LIST_FLAGS: Final = sql(
    """
    SELECT r.name, r.enabled, r.updated_at FROM flags r
    WHERE r.workspace_id = :workspace_id AND r.name > :after ORDER BY r.name LIMIT :most
    """
)


def list_flags(conn: Connection, workspace_id: str, *, after: str = FIRST, most: int = ALL) -> list[Flag]:
    """Give the flags that a workspace has set, by name, those behind the name `after`."""
    rows = LIST_FLAGS.run(conn, {"workspace_id": workspace_id, "after": after, "most": most})
    return [_flag(row) for row in rows]


def _flag(row: Row[tuple[str, int, datetime]]) -> Flag:
    state = FlagState.ON if row.enabled else FlagState.OFF
    return Flag(row.name, state, must_instant(row.updated_at))
