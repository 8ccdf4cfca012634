"""Reading the audit: who did what in a workspace, newest first."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sql import Sql, sql
from shared.db.types import must_instant, read_json, write_instant


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which entries of a workspace: at most `most`, of a kind of thing or one thing, from an instant on.

    `before` is the id that the last page ended with.
    """

    workspace_id: str
    most: int
    resource_type: str | None = None
    resource_id: str | None = None
    since: datetime | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry as it is read."""

    id: str
    at: datetime
    actor: str
    action: str
    resource_type: str
    resource_id: str
    detail: Mapping[str, Any] | None


_CLAUSES: Final[Mapping[str, str]] = {
    "resource_type": " AND r.resource_type = :resource_type",
    "resource_id": " AND r.resource_id = :resource_id",
    "since": " AND r.at >= :since",
    "before": " AND r.id < :before",
}


@lru_cache
def _statement(given: tuple[str, ...]) -> Sql:
    """Make the statement for what is given; each combination is compiled once."""
    clauses = "".join(_CLAUSES[name] for name in given)
    return sql(
        "SELECT r.id, r.at, r.actor, r.action, r.resource_type, r.resource_id, r.detail FROM audit r"
        f" WHERE r.workspace_id = :workspace_id{clauses} ORDER BY r.id DESC LIMIT :most"
    )


def list_audit(conn: Connection, query: AuditQuery) -> list[AuditRow]:
    """Give the entries that a query asks for, newest first."""
    filters = {
        "resource_type": query.resource_type,
        "resource_id": query.resource_id,
        "since": write_instant(query.since) if query.since else None,
        "before": query.before,
    }
    given = {name: value for name, value in filters.items() if value is not None}
    values = {**given, "workspace_id": query.workspace_id, "most": query.most}
    return [
        AuditRow(
            id=row.id,
            at=must_instant(row.at),
            actor=row.actor,
            action=row.action,
            resource_type=row.resource_type,
            resource_id=row.resource_id,
            detail=read_json(row.detail),
        )
        for row in _statement(tuple(given)).run(conn, values)
    ]
