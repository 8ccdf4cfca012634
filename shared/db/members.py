"""The members of a workspace: who they are, and what changes about them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import ALL, FIRST, sql
from shared.db.types import must_instant
from shared.model.roles import Role

LIST_MEMBERS: Final = sql(
    """
    SELECT r.id, r.email, r.name, r.role, r.created_at FROM members r
    WHERE r.workspace_id = :workspace_id AND r.id > :after ORDER BY r.id LIMIT :most
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


def list_members(
    conn: Connection, workspace_id: str, *, after: str = FIRST, most: int = ALL
) -> list[MemberRow]:
    """Give a workspace's members in the order in which they came, those behind the id `after`."""
    rows = LIST_MEMBERS.run(conn, {"workspace_id": workspace_id, "after": after, "most": most})
    return [_member(row) for row in rows]


FIND_MEMBER: Final = sql(
    """
    SELECT r.id, r.email, r.name, r.role, r.created_at FROM members r
    WHERE r.id = :id AND r.workspace_id = :workspace_id
    """
)


def find_member_by_id(conn: Connection, workspace_id: str, member_id: str) -> MemberRow | None:
    """Give one member of a workspace, or None."""
    row = FIND_MEMBER.run(conn, {"workspace_id": workspace_id, "id": member_id}).first()
    return None if row is None else _member(row)


def _member(row: Row[Any]) -> MemberRow:
    return MemberRow(row.id, row.email, row.name, Role(row.role), must_instant(row.created_at))


SET_ROLE: Final = sql("UPDATE members SET role = :role WHERE id = :id")


def set_member_role(conn: Connection, member_id: str, role: Role) -> None:
    """Give a member another role."""
    SET_ROLE.run(conn, {"id": member_id, "role": role})


DELETE_MEMBER: Final = sql("DELETE FROM members WHERE id = :id")


def delete_member(conn: Connection, member_id: str) -> None:
    """Remove a member; what was told to them is left to the retention."""
    DELETE_MEMBER.run(conn, {"id": member_id})
