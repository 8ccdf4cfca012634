"""Flags of the whole installation: the half that no workspace sets for itself."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection

from shared.db.flags import Flag
from shared.db.sql import sql
from shared.db.types import must_instant, write_instant
from shared.model.flag_states import FlagState

LIST_FEATURE_FLAGS: Final = sql("SELECT r.name, r.enabled, r.updated_at FROM feature_flags r ORDER BY r.name")


def list_feature_flags(conn: Connection) -> Mapping[str, Flag]:
    """Give the flags of the installation that were set, by name; there are as many as are known."""
    rows = LIST_FEATURE_FLAGS.run(conn)
    return {row.name: Flag(row.name, _state(row.enabled), must_instant(row.updated_at)) for row in rows}


LOCK_FEATURE_FLAG: Final = sql(
    "SELECT r.name, r.enabled, r.updated_at FROM feature_flags r WHERE r.name = :name {lock}"
)


def lock_feature_flag(conn: Connection, name: str) -> Flag | None:
    """Give a flag of the installation, locked until the transaction ends; None where it was never set."""
    row = LOCK_FEATURE_FLAG.run(conn, {"name": name}).first()
    return None if row is None else Flag(row.name, _state(row.enabled), must_instant(row.updated_at))


PUT_FEATURE_FLAG: Final = sql(
    """
    INSERT INTO feature_flags (name, enabled, updated_at) VALUES (:name, :enabled, :now)
    ON CONFLICT (name) DO UPDATE SET enabled = excluded.enabled, updated_at = excluded.updated_at
    """
)


def put_feature_flag(conn: Connection, flag: Flag) -> None:
    """Store a flag of the installation, over what it said before."""
    values = {
        "name": flag.name,
        "enabled": int(flag.state is FlagState.ON),
        "now": write_instant(flag.updated_at),
    }
    PUT_FEATURE_FLAG.run(conn, values)


WHO_SET: Final = sql("SELECT r.workspace_id FROM flags r WHERE r.name = :name ORDER BY r.workspace_id")


def workspaces_that_set(conn: Connection, name: str) -> list[str]:
    """Name the workspaces that have set their half of a flag, on or off."""
    return list(WHO_SET.run(conn, {"name": name}).scalars())


def _state(enabled: int) -> FlagState:
    return FlagState.ON if enabled else FlagState.OFF
