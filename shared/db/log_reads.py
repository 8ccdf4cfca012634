"""Reading the log of runs as a stream, which stops where a writer may still be: ids commit out of order."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import Sql, sql
from shared.db.types import must_instant, read_json, write_instant

LEVELS: Final = ("debug", "info", "warning", "error")
COLUMNS: Final = """
    r.xid, r.id, r.automation_id, a.key AS automation_key, r.run_id, r.level, r.message, r.data, r.at
"""
TABLES: Final = "automation_logs r LEFT JOIN automations a ON a.id = r.automation_id"
SETTLED: Final[Mapping[str, str]] = {
    "postgresql": " AND r.xid < CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)",
    "sqlite": "",
}


@dataclass(frozen=True, slots=True, order=True)
class LogCursor:
    """The last line that was read: the transaction that wrote it, and its id."""

    xid: int
    id: int


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines of a workspace; `level` and all that is more severe."""

    workspace_id: str
    automation_id: str | None = None
    run_id: str | None = None
    level: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line as it is read."""

    cursor: LogCursor
    automation_id: str | None
    automation_key: str | None
    run_id: str | None
    level: str
    message: str
    data: Mapping[str, Any] | None
    at: datetime


_CLAUSES: Final[Mapping[str, str]] = {
    "automation_id": " AND r.automation_id = :automation_id",
    "run_id": " AND r.run_id = :run_id",
    "since": " AND r.at >= :since",
    "level": " AND r.level IN (SELECT x.level FROM {rows})",
    "xid": " AND (r.xid, r.id) > (:xid, :log_id)",
}


@lru_cache
def _statement(dialect: str, given: tuple[str, ...], order: str) -> Sql:
    """Make the statement for what is given; each combination is compiled once."""
    clauses = "".join(_CLAUSES[name] for name in given) + SETTLED[dialect]
    return sql(
        f"SELECT {COLUMNS} FROM {TABLES} WHERE r.workspace_id = :workspace_id{clauses}"
        f" ORDER BY r.xid {order}, r.id {order} LIMIT :most",
        level="text",
    )


def logs_after(conn: Connection, query: LogQuery, cursor: LogCursor | None, *, most: int) -> list[LogRow]:
    """Give the lines that follow the cursor, in order; None begins with the first."""
    after = {} if cursor is None else {"xid": cursor.xid, "log_id": cursor.id}
    return _read(conn, query, after, ("ASC", most))


def newest_logs(conn: Connection, query: LogQuery, *, most: int) -> list[LogRow]:
    """Give the last lines, in order."""
    return _read(conn, query, {}, ("DESC", most))[::-1]


RUN_LOG: Final = sql(
    f"SELECT {COLUMNS} FROM {TABLES} WHERE r.workspace_id = :workspace_id AND r.run_id = :run_id"
    " ORDER BY r.id LIMIT :most"
)


def run_log(conn: Connection, workspace_id: str, run_id: str, *, most: int) -> list[LogRow]:
    """Give the lines of one run as they stand, in order; nobody goes on from the last one."""
    values = {"workspace_id": workspace_id, "run_id": run_id, "most": most}
    return [_row(row) for row in RUN_LOG.run(conn, values)]


LOG_END: Final = {
    dialect: sql(
        f"SELECT r.xid, r.id FROM automation_logs r WHERE r.workspace_id = :workspace_id{settled}"
        " ORDER BY r.xid DESC, r.id DESC LIMIT 1"
    )
    for dialect, settled in SETTLED.items()
}


def log_end(conn: Connection, workspace_id: str) -> LogCursor | None:
    """Give the place of a workspace's last line, before which all can be read by now; None without a line."""
    row = LOG_END[conn.dialect.name].run(conn, {"workspace_id": workspace_id}).first()
    return LogCursor(row.xid, row.id) if row else None


def _read(conn: Connection, query: LogQuery, after: Mapping[str, int], how: tuple[str, int]) -> list[LogRow]:
    order, most = how
    filters = {
        "automation_id": query.automation_id,
        "run_id": query.run_id,
        "since": write_instant(query.since) if query.since else None,
        **after,
    }
    values: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    given = tuple(name for name in values if name in _CLAUSES)
    values |= {"workspace_id": query.workspace_id, "most": most}
    if query.level is None:
        return [_row(row) for row in _statement(conn.dialect.name, given, order).run(conn, values)]
    levels = ({"level": level} for level in LEVELS[LEVELS.index(query.level) :])
    statement = _statement(conn.dialect.name, (*given, "level"), order)
    return [_row(row) for row in statement.run_set(conn, levels, **values)]


def _row(row: Row[Any]) -> LogRow:
    return LogRow(
        cursor=LogCursor(row.xid, row.id),
        automation_id=row.automation_id,
        automation_key=row.automation_key,
        run_id=row.run_id,
        level=row.level,
        message=row.message,
        data=read_json(row.data),
        at=must_instant(row.at),
    )
