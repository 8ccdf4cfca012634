"""The members of a workspace: who they are, and what changes about them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.sql import sql
from shared.db.types import must_instant
from shared.model.roles import Role

LIST_MEMBERS: Final = sql(
    """
    SELECT r.id, r.email, r.name, r.role, r.created_at FROM members r
    WHERE r.workspace_id = :workspace_id ORDER BY r.id
    """
)


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member as people see one."""

    id: str
    email: str
    name: str
    role: Role
    created_at: datetime


def list_members(conn: Connection, workspace_id: str) -> list[MemberRow]:
    """Give a workspace's members in the order in which they came."""
    rows = LIST_MEMBERS.run(conn, {"workspace_id": workspace_id})
    return [
        MemberRow(row.id, row.email, row.name, Role(row.role), must_instant(row.created_at)) for row in rows
    ]


SET_ROLE: Final = sql("UPDATE members SET role = :role WHERE id = :id")


def set_member_role(conn: Connection, member_id: str, role: Role) -> None:
    """Give a member another role."""
    SET_ROLE.run(conn, {"id": member_id, "role": role})


DELETE_MEMBER: Final = sql("DELETE FROM members WHERE id = :id")


def delete_member(conn: Connection, member_id: str) -> None:
    """Remove a member; what was told to them is left to the retention."""
    DELETE_MEMBER.run(conn, {"id": member_id})
