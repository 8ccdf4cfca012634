"""The inbox of a workspace as programs read it: a page at a time, and what has been read."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import Sql, sql
from shared.db.types import must_instant, read_instant, write_instant

COLUMNS: Final = "r.id, r.member_id, r.title, r.body, r.resource_type, r.resource_id, r.created_at, r.read_at"


@dataclass(frozen=True, slots=True)
class NoticeQuery:
    """Which notices of a workspace, newest first; `before` is the id that the last page ended with."""

    workspace_id: str
    most: int
    member_id: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """A notice to one member."""

    id: str
    member_id: str
    title: str
    body: str
    resource_type: str
    resource_id: str
    created_at: datetime
    read_at: datetime | None


@lru_cache
def _statement(given: tuple[str, ...]) -> Sql:
    """Make the statement for what is given; each combination is compiled once."""
    clauses = {"member_id": " AND r.member_id = :member_id", "before": " AND r.id < :before"}
    where = "".join(clauses[name] for name in given)
    return sql(
        f"SELECT {COLUMNS} FROM notifications r WHERE r.workspace_id = :workspace_id{where}"
        " ORDER BY r.id DESC LIMIT :most"
    )


def page_notices(conn: Connection, query: NoticeQuery) -> list[NoticeRow]:
    """Give the notices that a query asks for, newest first."""
    filters = {"member_id": query.member_id, "before": query.before}
    given = {name: value for name, value in filters.items() if value is not None}
    values = {**given, "workspace_id": query.workspace_id, "most": query.most}
    return [_notice(row) for row in _statement(tuple(given)).run(conn, values)]


MARK_READ: Final = sql(
    """
    UPDATE notifications SET read_at = COALESCE(read_at, :now) WHERE id = :id AND workspace_id = :workspace_id
    RETURNING id, member_id, title, body, resource_type, resource_id, created_at, read_at
    """
)


def mark_read(conn: Connection, workspace_id: str, notice_id: str, *, now: datetime) -> NoticeRow | None:
    """Note that a notice was read; None where there is none. A second call changes nothing."""
    values = {"id": notice_id, "workspace_id": workspace_id, "now": write_instant(now)}
    row = MARK_READ.run(conn, values).first()
    return None if row is None else _notice(row)


def _notice(row: Row[Any]) -> NoticeRow:
    return NoticeRow(
        id=row.id,
        member_id=row.member_id,
        title=row.title,
        body=row.body,
        resource_type=row.resource_type,
        resource_id=row.resource_id,
        created_at=must_instant(row.created_at),
        read_at=read_instant(row.read_at),
    )
