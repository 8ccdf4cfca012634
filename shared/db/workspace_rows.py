"""A workspace's own row: what it is called."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.sql import sql
from shared.db.types import must_instant


@dataclass(frozen=True, slots=True)
class WorkspaceRow:
    """A workspace as it stands."""

    id: str
    name: str
    created_at: datetime


READ_WORKSPACE: Final = sql("SELECT r.id, r.name, r.created_at FROM workspaces r WHERE r.id = :id")


def read_workspace(conn: Connection, workspace_id: str) -> WorkspaceRow | None:
    """Give a workspace; None where there is none."""
    row = READ_WORKSPACE.run(conn, {"id": workspace_id}).first()
    return None if row is None else WorkspaceRow(row.id, row.name, must_instant(row.created_at))


RENAME_WORKSPACE: Final = sql("UPDATE workspaces SET name = :name WHERE id = :id")


def set_workspace_name(conn: Connection, workspace_id: str, name: str) -> None:
    """Give a workspace another name."""
    RENAME_WORKSPACE.run(conn, {"id": workspace_id, "name": name})
