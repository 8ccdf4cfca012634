"""The inboxes of a workspace's members: what they were told, and what of it they have read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sql import Sql, sql
from shared.db.types import must_instant, read_instant, write_instant


@dataclass(frozen=True, slots=True)
class InboxQuery:
    """Which notices: those of a workspace's members or of one, all or unread ones, after an id; `most`."""

    workspace_id: str
    most: int
    member_id: str | None = None
    unread: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A notice as a member reads it; `member` is the mail address."""

    id: str
    member: str
    title: str
    body: str
    resource_type: str
    resource_id: str
    created_at: datetime
    read_at: datetime | None


COLUMNS: Final = "r.id, m.email, r.title, r.body, r.resource_type, r.resource_id, r.created_at, r.read_at"
# What was told to somebody who is no member any more stands in no inbox.
INBOXES: Final = "members m JOIN notifications r ON r.member_id = m.id AND r.workspace_id = m.workspace_id"

_CLAUSES: Final[Mapping[str, str]] = {
    "member_id": " AND m.id = :member_id",
    "unread": " AND r.read_at IS NULL",
    "after": " AND r.id > :after",
}


@lru_cache
def _statement(columns: str, given: tuple[str, ...], order: str) -> Sql:
    """Make the statement for what is given; each combination is compiled once."""
    clauses = "".join(_CLAUSES[name] for name in given)
    return sql(
        f"SELECT {columns} FROM {INBOXES} WHERE m.workspace_id = :workspace_id{clauses}"
        f" ORDER BY r.id {order} LIMIT :most"
    )


def list_notices(conn: Connection, query: InboxQuery) -> list[InboxItem]:
    """Give the notices that a query asks for, newest first."""
    given, values = _given(query)
    return [
        InboxItem(
            id=row.id,
            member=row.email,
            title=row.title,
            body=row.body,
            resource_type=row.resource_type,
            resource_id=row.resource_id,
            created_at=must_instant(row.created_at),
            read_at=read_instant(row.read_at),
        )
        for row in _statement(COLUMNS, given, "DESC").run(conn, values)
    ]


def notice_ids(conn: Connection, query: InboxQuery) -> list[str]:
    """Give the ids of the notices that a query asks for, oldest first."""
    given, values = _given(query)
    return list(_statement("r.id", given, "ASC").run(conn, values).scalars())


def _given(query: InboxQuery) -> tuple[tuple[str, ...], dict[str, Any]]:
    filters = {"member_id": query.member_id, "unread": query.unread or None, "after": query.after}
    values = {name: value for name, value in filters.items() if value is not None}
    return tuple(values), {**values, "workspace_id": query.workspace_id, "most": query.most}


FIND_NOTICES: Final = sql(
    f"SELECT r.id, m.id AS member_id FROM {INBOXES} JOIN {{rows}} ON r.id = x.id"
    " WHERE m.workspace_id = :workspace_id",
    id="text",
)


def notice_owners(conn: Connection, workspace_id: str, notice_ids: Iterable[str]) -> dict[str, str]:
    """Give whose each of these notices is, by the notice's id; what is no such notice is left out."""
    rows = FIND_NOTICES.run_set(conn, ({"id": each} for each in notice_ids), workspace_id=workspace_id)
    return {row.id: row.member_id for row in rows}


MARK_READ: Final = sql(
    "UPDATE notifications SET read_at = :now WHERE id IN (SELECT x.id FROM {rows}) AND read_at IS NULL",
    id="text",
)


def mark_read(conn: Connection, notice_ids: Iterable[str], *, now: datetime) -> int:
    """Mark notices as read; tell how many were not. A second call keeps the time of the first."""
    rows = ({"id": each} for each in notice_ids)
    return MARK_READ.run_set(conn, rows, now=write_instant(now)).rowcount
