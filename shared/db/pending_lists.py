"""Lists of pending executions, at a cost that does not grow with what is over (docs/delayed.md).

What waits is listed by when it is due, the soonest first; all else newest first. Each list walks along one
index. What that index does not know is looked at row by row, at most `SCANNED` rows for a page. So a page may
hold less than was asked for, or nothing, and still have a next one (docs/api.md, "Pages").
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.pending_reads import SUMMARY_COLUMNS, SUMMARY_TABLES, PendingSummary, pending_summary
from shared.db.sql import Sql, sql
from shared.db.types import must_instant, write_instant
from shared.db.walking import SCANNED, downward, gather
from shared.model.pending import PendingSkip, PendingStatus
from shared.model.subjects import SubjectRef


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: at a row that is due at an instant, or at a row of an id alone."""

    id: str
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PendingQuery:
    """Which of a workspace's pending executions, at most `most`; `after` is where the last page ended."""

    workspace_id: str
    most: int
    status: PendingStatus | None = None
    skip_reason: PendingSkip | None = None
    automation_id: str | None = None
    subject: SubjectRef | None = None
    after: Place | None = None


@dataclass(frozen=True, slots=True)
class PendingPage:
    """Some pending executions, and the place after which to go on; None when there are no more."""

    rows: list[PendingSummary]
    after: Place | None


class _Index(StrEnum):
    """The indexes that a list can walk along: the columns in their order."""

    DUE = "r.workspace_id, r.due_at, r.id"
    OPEN = "r.due_at, r.id"
    AUTOMATION = "r.automation_id, r.id"
    WORKSPACE = "r.workspace_id, r.id"


@dataclass(frozen=True, slots=True)
class _Walk:
    """Which index is walked along, and what is looked at row by row on the way."""

    index: _Index
    looked: tuple[str, ...]

    @property
    def is_by_due(self) -> bool:
        """Tell whether what is due first comes first."""
        return self.index in (_Index.DUE, _Index.OPEN)


# As in `run_lists`: comparing and sorting by all columns of an index leaves a planner no other one.
_BOUNDS: Final[Mapping[_Index, str]] = {
    _Index.DUE: "r.status = 'pending'"
    " AND (r.workspace_id, r.due_at, r.id) > ((SELECT :workspace_id), :due_at, :id)"
    " AND (r.workspace_id, r.due_at, r.id) < ((SELECT :workspace_id), :last_due, '')",
    _Index.OPEN: "r.ended_at IS NULL AND r.workspace_id = :workspace_id"
    " AND r.subject_type = :subject_type AND r.subject_id = :subject_id AND (r.status || '') = 'pending'"
    " AND (r.due_at, r.id) > (:due_at, :id)",
    _Index.AUTOMATION: "(r.automation_id, r.id) >= ((SELECT :automation_id), '')"
    " AND (r.automation_id, r.id) < ((SELECT :automation_id), :id)",
    _Index.WORKSPACE: "(r.workspace_id, r.id) >= ((SELECT :workspace_id), '')"
    " AND (r.workspace_id, r.id) < ((SELECT :workspace_id), :id)",
}
_LOOKED: Final[Mapping[str, str]] = {
    "status": "(r.status || '') = :status",
    "skip_reason": "r.skip_reason = :skip_reason",
    "automation_id": "(r.automation_id || '') = :automation_id",
    "subject": "(r.subject_type || '') = :subject_type AND (r.subject_id || '') = :subject_id",
}
_FIRST_DUE, _LAST_DUE = "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"
_HIGHEST_ID: Final = "z"


def page_of_pending(conn: Connection, query: PendingQuery) -> PendingPage:
    """Give the next pending executions that the query fits, as far as one page looks."""
    walk, values = _walk(query), _values(query)
    edge = None
    if walk.looked:
        found = _edge_statement(walk.index).run(conn, values).first()
        edge = None if found is None else _place(walk, found.id, must_instant(found.due_at))
        values |= _edge_values(edge)
    rows = [pending_summary(row) for row in _page_statement(walk, edge is not None).run(conn, values)]
    after = _place(walk, rows[-1].id, rows[-1].due_at) if len(rows) == query.most else edge
    return PendingPage([row for row in rows if row.workspace_id == query.workspace_id], after)


def list_pending(conn: Connection, query: PendingQuery) -> list[PendingSummary]:
    """Give the first pending executions that the query fits, however far they are apart."""

    def read(most: int, after: Place | None) -> tuple[list[PendingSummary], Place | None]:
        page = page_of_pending(conn, replace(query, most=most, after=after))
        return page.rows, page.after

    return gather(read, query.after, query.most)


def _walk(query: PendingQuery) -> _Walk:
    given = [name for name in _LOOKED if getattr(query, name) is not None]
    if query.status is PendingStatus.PENDING:
        index = _Index.DUE if query.subject is None else _Index.OPEN
        known = {"status"} if query.subject is None else {"status", "subject"}
    elif query.automation_id is not None:
        index, known = _Index.AUTOMATION, {"automation_id"}
    else:
        index, known = _Index.WORKSPACE, set()
    return _Walk(index, tuple(name for name in given if name not in known))


def _values(query: PendingQuery) -> dict[str, Any]:
    is_by_due = query.status is PendingStatus.PENDING
    place = query.after or Place("" if is_by_due else _HIGHEST_ID)
    return {
        "workspace_id": query.workspace_id,
        "status": query.status,
        "skip_reason": query.skip_reason,
        "automation_id": query.automation_id,
        "subject_type": query.subject.type if query.subject else None,
        "subject_id": query.subject.id if query.subject else None,
        "due_at": write_instant(place.due_at) if place.due_at else _FIRST_DUE,
        "last_due": _LAST_DUE,
        "id": place.id,
        "most": query.most,
        "skipped": SCANNED - 1,
    }


def _place(walk: _Walk, id_: str, due_at: datetime) -> Place:
    return Place(id_, due_at if walk.is_by_due else None)


def _edge_values(edge: Place | None) -> dict[str, Any]:
    if edge is None:
        return {}
    return {"edge_id": edge.id, "edge_due": write_instant(edge.due_at) if edge.due_at else None}


_TO_EDGE: Final[Mapping[_Index, str]] = {
    _Index.DUE: "(r.workspace_id, r.due_at, r.id) <= ((SELECT :workspace_id), :edge_due, :edge_id)",
    _Index.OPEN: "(r.due_at, r.id) <= (:edge_due, :edge_id)",
    _Index.AUTOMATION: "(r.automation_id, r.id) >= ((SELECT :automation_id), :edge_id)",
    _Index.WORKSPACE: "(r.workspace_id, r.id) >= ((SELECT :workspace_id), :edge_id)",
}


@lru_cache
def _page_statement(walk: _Walk, has_edge: object) -> Sql:
    """Make the page's statement for what is asked; each combination is compiled once."""
    clauses = [_BOUNDS[walk.index], *(_LOOKED[name] for name in walk.looked)]
    if has_edge:
        clauses.append(_TO_EDGE[walk.index])
    return sql(
        f"SELECT {SUMMARY_COLUMNS} FROM {SUMMARY_TABLES} WHERE {' AND '.join(clauses)}"
        f" ORDER BY {_order(walk)} LIMIT :most"
    )


@lru_cache
def _edge_statement(index: _Index) -> Sql:
    return sql(
        f"SELECT r.id, r.due_at FROM pending_executions r WHERE {_BOUNDS[index]}"
        f" ORDER BY {_order(_Walk(index, ()))} LIMIT 1 OFFSET :skipped"
    )


def _order(walk: _Walk) -> str:
    return walk.index.value if walk.is_by_due else downward(walk.index)
