"""Workspaces, the people in them, their keys, and the notices that reach them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.sql import sql
from shared.db.types import write_instant
from shared.ids import new_id
from shared.model.roles import Role

ADMIN_ROLES: Final = (Role.OWNER, Role.ADMIN)

INSERT_WORKSPACE: Final = sql(
    "INSERT INTO workspaces (id, name, created_at) VALUES (:id, :name, :now) ON CONFLICT (id) DO NOTHING"
)


def insert_workspace(conn: Connection, workspace_id: str, name: str, *, now: datetime) -> bool:
    """Make a workspace; False when it is there already."""
    values = {"id": workspace_id, "name": name, "now": write_instant(now)}
    return INSERT_WORKSPACE.run(conn, values).rowcount == 1


HAS_WORKSPACE: Final = sql("SELECT name FROM workspaces WHERE id = :id")


def workspace_name(conn: Connection, workspace_id: str) -> str | None:
    """Give a workspace's name, or None where there is none."""
    return HAS_WORKSPACE.run(conn, {"id": workspace_id}).scalar()


INSERT_MEMBER: Final = sql(
    """
    INSERT INTO members (id, workspace_id, email, name, role, created_at)
    VALUES (:id, :workspace_id, :email, :name, :role, :now) ON CONFLICT (workspace_id, email) DO NOTHING
    """
)


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody in a workspace."""

    id: str
    workspace_id: str
    email: str
    name: str
    role: Role


def insert_member(conn: Connection, member: Member, *, now: datetime) -> bool:
    """Add a member; False when the workspace has one with this address."""
    values = {
        "id": member.id,
        "workspace_id": member.workspace_id,
        "email": member.email,
        "name": member.name,
        "role": member.role,
        "now": write_instant(now),
    }
    return INSERT_MEMBER.run(conn, values).rowcount == 1


INSERT_KEY: Final = sql(
    """
    INSERT INTO api_keys (id, workspace_id, name, key_hash, last4, scopes, created_at)
    SELECT id, workspace_id, name, key_hash, last4, scopes, :now FROM {rows}
    """,
    id="text",
    workspace_id="text",
    name="text",
    key_hash="text",
    last4="text",
    scopes="jsonb",
)


@dataclass(frozen=True, slots=True)
class ApiKeyRow:
    """A key as it is stored: only the hash of it, and its last four characters for people."""

    id: str
    workspace_id: str
    name: str
    key_hash: str
    last4: str
    scopes: tuple[str, ...]


def insert_api_key(conn: Connection, key: ApiKeyRow, *, now: datetime) -> None:
    """Store a key's hash."""
    row = {
        "id": key.id,
        "workspace_id": key.workspace_id,
        "name": key.name,
        "key_hash": key.key_hash,
        "last4": key.last4,
        "scopes": list(key.scopes),
    }
    INSERT_KEY.run_set(conn, [row], now=write_instant(now))


@dataclass(frozen=True, slots=True)
class Notice:
    """What every member with one of `roles` is told, once each."""

    workspace_id: str
    roles: tuple[str, ...]
    title: str
    body: str
    resource_type: str
    resource_id: str


FIND_MEMBERS: Final = sql(
    "SELECT r.id, r.workspace_id, r.role FROM members r JOIN {rows} ON r.workspace_id = x.workspace_id",
    workspace_id="text",
)
INSERT_NOTIFICATIONS: Final = sql(
    """
    INSERT INTO notifications (id, workspace_id, member_id, title, body, resource_type, resource_id,
        created_at)
    SELECT id, workspace_id, member_id, title, body, resource_type, resource_id, :now FROM {rows}
    """,
    id="text",
    workspace_id="text",
    member_id="text",
    title="text",
    body="text",
    resource_type="text",
    resource_id="text",
)


def insert_notices(conn: Connection, notices: Iterable[Notice], *, now: datetime) -> None:
    """Put notices into the inboxes of those whom they concern, in the transaction of what they tell of."""
    wanted = list(notices)
    if not wanted:
        return
    workspaces = [{"workspace_id": found} for found in sorted({notice.workspace_id for notice in wanted})]
    members = FIND_MEMBERS.run_set(conn, workspaces).all()
    rows = [
        {
            "id": new_id(),
            "workspace_id": notice.workspace_id,
            "member_id": member.id,
            "title": notice.title,
            "body": notice.body,
            "resource_type": notice.resource_type,
            "resource_id": notice.resource_id,
        }
        for notice in wanted
        for member in members
        if member.workspace_id == notice.workspace_id and member.role in notice.roles
    ]
    if rows:
        INSERT_NOTIFICATIONS.run_set(conn, rows, now=write_instant(now))
