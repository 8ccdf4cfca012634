"""Reading the log of runs as a stream, which stops where a writer may still be: ids commit out of order.

A line's place is the transaction that wrote it and its id. What was written since the oldest open transaction
began is left for later, so that nothing turns up behind a place that was read (docs/api.md, "The log"). What
no index knows is looked at line by line, at most `SCANNED` of them for a page.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import Sql, sql
from shared.db.types import must_instant, read_json, write_instant

LEVELS: Final = ("debug", "info", "warning", "error")
SCANNED: Final = 10_000
LATE: Final = timedelta(hours=1)  # how long after its time a line may be written: SQL was away
COLUMNS: Final = """
    r.xid, r.id, r.automation_id, COALESCE(a.key, n.title) AS automation_key,
    r.run_id, r.level, r.message, r.data, r.at
"""
TABLES: Final = (
    "automation_logs r LEFT JOIN automations a ON a.id = r.automation_id"
    " LEFT JOIN automation_runs n ON n.id = r.run_id AND r.automation_id IS NULL"
)
MAX_PLACE: Final = 2**63 - 1
_CURSOR: Final = re.compile(r"(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,18})")


@dataclass(frozen=True, slots=True, order=True)
class LogCursor:
    """The last line that was read: the transaction that wrote it, and its id."""

    xid: int
    id: int

    def __str__(self) -> str:
        return f"{self.xid}-{self.id}"

    @property
    def before(self) -> "LogCursor":
        """The place right before this one."""
        return LogCursor(self.xid, self.id - 1)


START: Final = LogCursor(0, 0)


def read_cursor(text: str) -> LogCursor:
    """Read what `str` makes of a cursor. Raises ValueError."""
    found = _CURSOR.fullmatch(text)
    if found is None or max(int(found[1]), int(found[2])) > MAX_PLACE:
        raise ValueError("is no place in a log, which reads like 7041-3")
    return LogCursor(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines of a workspace: `level` and what is more severe, from `since` on, and before `until`."""

    workspace_id: str
    automation_id: str | None = None
    run_id: str | None = None
    level: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, row: "LogRow") -> bool:
        """Tell whether a line of this workspace is one that is meant."""
        asked = (
            self.automation_id in (None, row.automation_id),
            self.run_id in (None, row.run_id),
            self.level is None or LEVELS.index(row.level) >= LEVELS.index(self.level),
            self.since is None or row.at >= self.since,
            self.until is None or row.at < self.until,
        )
        return all(asked)


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


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some lines. All that fits up to `edge` has been read; where `is_end`, that is all there is by now."""

    rows: list[LogRow]
    edge: LogCursor
    is_end: bool


@dataclass(frozen=True, slots=True)
class _Span:
    """The places between two others, both of them left out."""

    low: LogCursor
    high: LogCursor


# Values inside a SELECT, and all columns of the index in the order: see `run_lists`.
_SPAN: Final = (
    "(r.workspace_id, r.xid, r.id) > ((SELECT :workspace_id), :low_xid, :low_id)"
    " AND (r.workspace_id, r.xid, r.id) < ((SELECT :workspace_id), :high_xid, :high_id)"
)
_SPAN_OF_RUN: Final = (
    "r.run_id = :run_id AND (r.workspace_id || '') = :workspace_id"
    " AND (r.xid, r.id) > (:low_xid, :low_id) AND (r.xid, r.id) < (:high_xid, :high_id)"
)
_LOOKED: Final[Mapping[str, str]] = {
    "automation_id": "(r.automation_id || '') = :automation_id",
    "since": "r.at >= :since",
    "until": "r.at < :until",
    **{
        level: "r.level IN ('" + "', '".join(LEVELS[severity:]) + "')"
        for severity, level in enumerate(LEVELS)
    },
}
_UPWARD: Final = "r.workspace_id, r.xid, r.id"
_DOWNWARD: Final = "r.workspace_id DESC, r.xid DESC, r.id DESC"


def logs_after(conn: Connection, query: LogQuery, cursor: LogCursor | None, *, most: int) -> LogPage:
    """Give the lines that follow the cursor, in order; None begins with the first."""
    span = _Span(cursor or START, _settled(conn))
    edge = None
    if _looks(query):
        edge = _edge(conn, query, span, _UPWARD)
        span = _Span(span.low, LogCursor(edge.xid, edge.id + 1)) if edge else span
    rows = _read(conn, query, span, (_UPWARD, most))
    if len(rows) == most:
        return LogPage(rows, rows[-1].cursor, is_end=False)
    if edge is None and _looks(query):
        edge = _last(conn, query.workspace_id, span)
        return LogPage(rows, edge, is_end=True)
    return LogPage(rows, edge or (rows[-1].cursor if rows else span.low), is_end=edge is None)


def logs_before(conn: Connection, query: LogQuery, cursor: LogCursor | None, *, most: int) -> LogPage:
    """Give the lines that stand before the cursor, the newest first; None begins with the last."""
    span = _Span(START, _settled(conn) if cursor is None else min(cursor, _settled(conn)))
    edge = None
    if _looks(query):
        edge = _edge(conn, query, span, _DOWNWARD)
        span = _Span(edge.before, span.high) if edge else span
    rows = _read(conn, query, span, (_DOWNWARD, most))
    if len(rows) == most:
        return LogPage(rows, rows[-1].cursor, is_end=False)
    if edge is None or (query.since is not None and _is_older(conn, query.workspace_id, span, query.since)):
        return LogPage(rows, START, is_end=True)
    return LogPage(rows, edge, is_end=False)


def newest_logs(conn: Connection, query: LogQuery, *, most: int) -> list[LogRow]:
    """Give the last lines, in order, however far they are apart."""
    found: list[LogRow] = []
    cursor: LogCursor | None = None
    while True:
        page = logs_before(conn, query, cursor, most=most - len(found))
        found += page.rows
        cursor = page.edge
        if page.is_end or len(found) == most:
            return found[::-1]


RUN_LOG: Final = sql(
    f"SELECT {COLUMNS} FROM {TABLES} WHERE r.workspace_id = :workspace_id AND r.run_id = :run_id"
    " ORDER BY r.id LIMIT :most"
)


def run_log(conn: Connection, workspace_id: str, run_id: str, *, most: int) -> list[LogRow]:
    """Give the lines of one run as they stand, in order; nobody goes on from the last one."""
    values = {"workspace_id": workspace_id, "run_id": run_id, "most": most}
    return [_row(row) for row in RUN_LOG.run(conn, values)]


LAST: Final = sql(f"SELECT r.xid, r.id FROM automation_logs r WHERE {_SPAN} ORDER BY {_DOWNWARD} LIMIT 1")


def log_end(conn: Connection, workspace_id: str) -> LogCursor:
    """Give the place of a workspace's last line, before which all can be read by now."""
    return _last(conn, workspace_id, _Span(START, _settled(conn)))


def log_start(conn: Connection, workspace_id: str, since: datetime) -> LogCursor:
    """Give a place before which no line is as young as `since`, at the cost of the lines that are."""
    query, high = LogQuery(workspace_id), _settled(conn)
    while (edge := _edge(conn, query, _Span(START, high), _DOWNWARD)) is not None:
        if _is_older(conn, workspace_id, _Span(edge.before, high), since):
            return high.before
        high = edge
    return START


SNAPSHOT: Final = {
    "postgresql": sql("SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)"),
    "sqlite": sql("SELECT 1"),
}


def _settled(conn: Connection) -> LogCursor:
    """Give the place before which nobody writes any more. SQLite has one writer, and every xid is 0 there."""
    return LogCursor(SNAPSHOT[conn.dialect.name].run(conn).scalar_one(), 0)


NEWEST: Final = sql(f"SELECT max(r.at) FROM automation_logs r WHERE {_SPAN}")


def _is_older(conn: Connection, workspace_id: str, span: _Span, since: datetime) -> bool:
    """Tell whether all lines of a span are so old that none before them can be as young as `since`."""
    newest = NEWEST.run(conn, _values(LogQuery(workspace_id), span)).scalar()
    return newest is not None and must_instant(newest) < since - LATE


def _looks(query: LogQuery) -> bool:
    """Tell whether something is asked that no index knows; the lines of a run are few."""
    asked = (query.automation_id, query.level, query.since, query.until)
    return query.run_id is None and any(each is not None for each in asked)


def _edge(conn: Connection, query: LogQuery, span: _Span, order: str) -> LogCursor | None:
    """Give the place of the last line that a page looks at; None if it looks at all that is there."""
    row = _edge_statement(order).run(conn, _values(query, span)).first()
    return LogCursor(row.xid, row.id) if row else None


def _last(conn: Connection, workspace_id: str, span: _Span) -> LogCursor:
    """Give the last place in a span; where there is none, its begin."""
    row = LAST.run(conn, _values(LogQuery(workspace_id), span)).first()
    return LogCursor(row.xid, row.id) if row else span.low


def _read(conn: Connection, query: LogQuery, span: _Span, how: tuple[str, int]) -> list[LogRow]:
    order, most = how
    asked = {"automation_id": query.automation_id, "since": query.since, "until": query.until}
    names = [name for name, value in asked.items() if value is not None]
    looked = (*names, *([query.level] if query.level else []))
    where = _SPAN if query.run_id is None else _SPAN_OF_RUN
    statement = _page_statement(where, looked, order)
    return [_row(row) for row in statement.run(conn, {**_values(query, span), "most": most})]


def _values(query: LogQuery, span: _Span) -> dict[str, Any]:
    return {
        "workspace_id": query.workspace_id,
        "automation_id": query.automation_id,
        "run_id": query.run_id,
        "since": write_instant(query.since) if query.since else None,
        "until": write_instant(query.until) if query.until else None,
        "low_xid": span.low.xid,
        "low_id": span.low.id,
        "high_xid": span.high.xid,
        "high_id": span.high.id,
        "skipped": SCANNED - 1,
    }


@lru_cache
def _page_statement(where: str, looked: tuple[str, ...], order: str) -> Sql:
    """Make the statement for what is asked; each combination is compiled once."""
    clauses = " AND ".join([where, *(_LOOKED[name] for name in looked)])
    return sql(f"SELECT {COLUMNS} FROM {TABLES} WHERE {clauses} ORDER BY {order} LIMIT :most")


@lru_cache
def _edge_statement(order: str) -> Sql:
    return sql(
        f"SELECT r.xid, r.id FROM automation_logs r WHERE {_SPAN} ORDER BY {order} LIMIT 1 OFFSET :skipped"
    )


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
