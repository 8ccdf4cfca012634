"""Secrets as they are stored: sealed values by name. Nothing here opens one."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.sql import ALL, FIRST, sql
from shared.db.types import must_instant, write_instant


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A secret as people see it: never its value."""

    name: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """A secret as it lies there."""

    workspace_id: str
    name: str
    sealed: str


LIST_SECRETS: Final = sql(
    """
    SELECT r.name, r.created_at, r.updated_at FROM secrets r
    WHERE r.workspace_id = :workspace_id AND r.name > :after ORDER BY r.name LIMIT :most
    """
)


def list_secrets(
    conn: Connection, workspace_id: str, *, after: str = FIRST, most: int = ALL
) -> list[SecretRow]:
    """Give a workspace's secrets by name, those behind the name `after`."""
    rows = LIST_SECRETS.run(conn, {"workspace_id": workspace_id, "after": after, "most": most})
    return [SecretRow(row.name, must_instant(row.created_at), must_instant(row.updated_at)) for row in rows]


LOCK_SECRET: Final = sql(
    """
    SELECT r.name, r.created_at, r.updated_at FROM secrets r
    WHERE r.workspace_id = :workspace_id AND r.name = :name {lock}
    """
)


def lock_secret(conn: Connection, workspace_id: str, name: str) -> SecretRow | None:
    """Give one secret, locked until the transaction ends; None where there is none."""
    row = LOCK_SECRET.run(conn, {"workspace_id": workspace_id, "name": name}).first()
    if row is None:
        return None
    return SecretRow(row.name, must_instant(row.created_at), must_instant(row.updated_at))


PUT_SECRET: Final = sql(
    """
    INSERT INTO secrets (workspace_id, name, value, created_at, updated_at)
    VALUES (:workspace_id, :name, :value, :now, :now)
    ON CONFLICT (workspace_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
    """
)


def put_secret(conn: Connection, secret: SealedSecret, *, now: datetime) -> None:
    """Store a secret, over an earlier one of its name."""
    values = {
        "workspace_id": secret.workspace_id,
        "name": secret.name,
        "value": secret.sealed,
        "now": write_instant(now),
    }
    PUT_SECRET.run(conn, values)


DELETE_SECRET: Final = sql("DELETE FROM secrets WHERE workspace_id = :workspace_id AND name = :name")


def delete_secret(conn: Connection, workspace_id: str, name: str) -> bool:
    """Drop a secret; False where there is none."""
    return DELETE_SECRET.run(conn, {"workspace_id": workspace_id, "name": name}).rowcount == 1


FIND_SECRETS: Final = sql(
    """
    SELECT r.name, r.value FROM secrets r JOIN {rows} ON r.name = x.name WHERE r.workspace_id = :workspace_id
    """,
    name="text",
)


def find_sealed(conn: Connection, workspace_id: str, names: Iterable[str]) -> dict[str, str]:
    """Give the sealed values of a workspace's secrets by name; what is not there is left out."""
    rows = FIND_SECRETS.run_set(conn, ({"name": name} for name in names), workspace_id=workspace_id)
    return {row.name: row.value for row in rows}


ALL_SEALED: Final = sql(
    "SELECT r.workspace_id, r.name, r.value FROM secrets r ORDER BY r.workspace_id, r.name LIMIT :most"
)


def all_sealed(conn: Connection, *, most: int) -> list[SealedSecret]:
    """Give secrets of all workspaces, for a look at whether they can be opened."""
    rows = ALL_SEALED.run(conn, {"most": most})
    return [SealedSecret(row.workspace_id, row.name, row.value) for row in rows]
