"""Lists of runs, newest first, at a cost that does not grow with what is over.

Each list walks down one index. What that index does not know is looked at row by row, at most `SCANNED` rows
for a page. So a page may hold less than was asked for, or nothing, and still have a next one (docs/api.md,
"Pages").
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.reads import RUN_COLUMNS, RUN_TABLES, RunSummary, run_summary
from shared.db.sql import Sql, sql
from shared.db.walking import SCANNED, downward, gather
from shared.ids import first_id
from shared.model.moves import RunStatus
from shared.model.runs import RunSource
from shared.model.subjects import SubjectRef

IDS_APART: Final = timedelta(minutes=1)  # how far the instant inside a run's id may be from `created_at`


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which of a workspace's runs, newest first; `before` is the id that the last page ended with.

    `since` and `until` are about when a run was made: from the one on, up to the other and without it.
    """

    workspace_id: str
    most: int
    status: RunStatus | None = None
    automation_id: str | None = None
    before: str | None = None
    trigger_type: str | None = None
    source: RunSource | None = None
    subject: SubjectRef | None = None
    since: datetime | None = None
    until: datetime | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs, and the id before which to go on; None when there are no more."""

    rows: list[RunSummary]
    before: str | None


class _Index(StrEnum):
    """The indexes of runs that a list can walk down: the columns before the id."""

    WORKSPACE = "r.workspace_id"
    STATUS = "r.workspace_id, r.status"
    AUTOMATION = "r.automation_id"
    FINGERPRINT = "r.workspace_id, r.fingerprint"


@dataclass(frozen=True, slots=True)
class _Walk:
    """Which index is walked down, and what is looked at row by row on the way."""

    index: _Index
    looked: tuple[str, ...]


# Comparing and sorting by all columns of an index leaves a planner no other one: that of the ids, which holds
# the rows of all workspaces, would look as good to it. A value inside a SELECT is none that it can guess by.
_BOUNDS: Final[Mapping[_Index, str]] = {
    _Index.WORKSPACE: "(r.workspace_id, r.id) >= ((SELECT :workspace_id), :low)"
    " AND (r.workspace_id, r.id) < ((SELECT :workspace_id), :high)",
    _Index.STATUS: "(r.workspace_id, r.status, r.id) >= ((SELECT :workspace_id), :status, :low)"
    " AND (r.workspace_id, r.status, r.id) < ((SELECT :workspace_id), :status, :high)"
    " AND r.status <> 'SUCCEEDED'",
    _Index.AUTOMATION: "(r.automation_id, r.id) >= ((SELECT :automation_id), :low)"
    " AND (r.automation_id, r.id) < ((SELECT :automation_id), :high)",
    _Index.FINGERPRINT: "(r.workspace_id, r.fingerprint, r.id)"
    " >= ((SELECT :workspace_id), :fingerprint, :low)"
    " AND (r.workspace_id, r.fingerprint, r.id) < ((SELECT :workspace_id), :fingerprint, :high)"
    " AND r.status = 'DEAD_LETTER'",
}
_LOOKED: Final[Mapping[str, str]] = {
    "status": "(r.status || '') = :status",
    "automation_id": "(r.automation_id || '') = :automation_id",
    "source": "(r.source || '') = :source",
    "trigger_type": "r.trigger_type = :trigger_type",
    "subject": "r.subject_type = :subject_type AND r.subject_id = :subject_id",
}
_LOWEST, _HIGHEST = "", "z"


def page_of_runs(conn: Connection, query: RunQuery) -> RunPage:
    """Give the next runs that the query fits, as far as one page looks."""
    walk, values = _walk(query), _values(query)
    edge = _edge_statement(walk.index).run(conn, values).scalar() if walk.looked else None
    if edge is not None:
        values["low"] = edge
    read = [run_summary(row) for row in _page_statement(walk).run(conn, values)]
    before = read[-1].id if len(read) == query.most else edge
    return RunPage([row for row in read if _fits(row, query)], before)


def list_runs(conn: Connection, query: RunQuery) -> list[RunSummary]:
    """Give the newest runs that the query fits, however far they are apart."""

    def read(most: int, before: str | None) -> tuple[list[RunSummary], str | None]:
        page = page_of_runs(conn, replace(query, most=most, before=before))
        return page.rows, page.before

    return gather(read, query.before, query.most)


def _walk(query: RunQuery) -> _Walk:
    index = _Index.WORKSPACE
    looked = ["status", "automation_id", "trigger_type", "source", "subject"]
    if query.fingerprint is not None:
        index = _Index.FINGERPRINT
    elif query.status is not None and query.status is not RunStatus.SUCCEEDED:
        index = _Index.STATUS
        looked.remove("status")
    elif query.automation_id is not None:
        index = _Index.AUTOMATION
        looked.remove("automation_id")
    return _Walk(index, tuple(name for name in looked if getattr(query, name) is not None))


def _fits(row: RunSummary, query: RunQuery) -> bool:
    """Tell whether a row that the walk has met is one that is meant."""
    is_young = query.since is None or row.created_at >= query.since
    is_old = query.until is None or row.created_at < query.until
    return is_young and is_old and row.workspace_id == query.workspace_id


def _values(query: RunQuery) -> dict[str, Any]:
    """Give the values of all that may be asked for; ids bound the walk by time, as they begin with it."""
    high = first_id(query.until + IDS_APART) if query.until else _HIGHEST
    return {
        "workspace_id": query.workspace_id,
        "status": query.status,
        "automation_id": query.automation_id,
        "trigger_type": query.trigger_type,
        "source": query.source,
        "fingerprint": query.fingerprint,
        "subject_type": query.subject.type if query.subject else None,
        "subject_id": query.subject.id if query.subject else None,
        "low": first_id(query.since - IDS_APART) if query.since else _LOWEST,
        "high": min(high, query.before or _HIGHEST),
        "most": query.most,
        "skipped": SCANNED - 1,
    }


@lru_cache
def _page_statement(walk: _Walk) -> Sql:
    """Make the page's statement for what is asked; each combination is compiled once."""
    clauses = [_BOUNDS[walk.index], *(_LOOKED[name] for name in walk.looked)]
    return sql(
        f"SELECT {RUN_COLUMNS} FROM {RUN_TABLES} WHERE {' AND '.join(clauses)}"
        f" ORDER BY {_order(walk.index)} LIMIT :most"
    )


@lru_cache
def _edge_statement(index: _Index) -> Sql:
    return sql(
        f"SELECT r.id FROM automation_runs r WHERE {_BOUNDS[index]}"
        f" ORDER BY {_order(index)} LIMIT 1 OFFSET :skipped"
    )


def _order(index: _Index) -> str:
    return downward(f"{index}, r.id")
