"""Lists of idle steps, at a cost that does not grow with what is over (docs/idle-sequences.md).

As lists of pending executions: what waits by when it is due, all else newest first; each walks along one
index and looks at no more than `SCANNED` rows for a page, so that one may hold less than was asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.idle_rows import IDLE_COLUMNS, idle_step_row
from shared.db.sql import Sql, sql
from shared.db.types import must_instant, write_instant
from shared.db.walking import SCANNED, downward, gather
from shared.model.idle_steps import IdleStatus, IdleStepRow, IdleStop

# Asked for row by row, so that no plan can read all agents.
_COLUMNS: Final = f"""{IDLE_COLUMNS},
    CASE WHEN r.rule = 'agent'
        THEN (SELECT a.name FROM ai_agents a WHERE a.workspace_id = r.workspace_id AND a.id = r.agent_id)
        ELSE (SELECT c.name FROM channels c WHERE c.workspace_id = r.workspace_id AND c.id = r.channel_id)
    END AS holder_name
"""
_FIRST_DUE, _LAST_DUE = "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"
_HIGHEST_ID: Final = "z"


@dataclass(frozen=True, slots=True)
class IdleStepShown:
    """A step with the name of the agent or channel whose rule it follows; None if that is there no more."""

    row: IdleStepRow
    holder_name: str | None


@dataclass(frozen=True, slots=True)
class IdlePlace:
    """Where a page ended: at a row that is due at an instant, or at a row of an id alone."""

    id: str
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IdleQuery:
    """Which of a workspace's steps, at most `most`; `after` is where the last page ended."""

    workspace_id: str
    most: int
    status: IdleStatus | None = None
    reason: IdleStop | None = None
    conversation_id: str | None = None
    agent_id: str | None = None
    due_before: datetime | None = None
    after: IdlePlace | None = None

    @property
    def is_by_due(self) -> bool:
        """Tell whether what is due first comes first."""
        return self.status is IdleStatus.PENDING and self.conversation_id is None


@dataclass(frozen=True, slots=True)
class IdlePage:
    """Some steps, and the place after which to go on; None when there are no more."""

    rows: list[IdleStepShown]
    after: IdlePlace | None


class _Index(StrEnum):
    """The indexes that a list can walk along: the columns in their order."""

    DUE = "r.workspace_id, r.due_at, r.id"
    CONVERSATION = "r.workspace_id, r.conversation_id, r.id"
    WORKSPACE = "r.workspace_id, r.id"


# As in `pending_lists`: comparing and sorting by all columns of an index leaves a planner no other one.
_BOUNDS: Final[Mapping[_Index, str]] = {
    _Index.DUE: "r.status = 'pending'"
    " AND (r.workspace_id, r.due_at, r.id) > ((SELECT :workspace_id), :due_at, :id)"
    " AND (r.workspace_id, r.due_at, r.id) < ((SELECT :workspace_id), :due_before, '')",
    _Index.CONVERSATION: "(r.workspace_id, r.conversation_id, r.id)"
    " >= ((SELECT :workspace_id), :conversation_id, '')"
    " AND (r.workspace_id, r.conversation_id, r.id) < ((SELECT :workspace_id), :conversation_id, :id)",
    _Index.WORKSPACE: "(r.workspace_id, r.id) >= ((SELECT :workspace_id), '')"
    " AND (r.workspace_id, r.id) < ((SELECT :workspace_id), :id)",
}
_TO_EDGE: Final[Mapping[_Index, str]] = {
    _Index.DUE: "(r.workspace_id, r.due_at, r.id) <= ((SELECT :workspace_id), :edge_due, :edge_id)",
    _Index.CONVERSATION: "(r.workspace_id, r.conversation_id, r.id)"
    " >= ((SELECT :workspace_id), :conversation_id, :edge_id)",
    _Index.WORKSPACE: "(r.workspace_id, r.id) >= ((SELECT :workspace_id), :edge_id)",
}
_LOOKED: Final[Mapping[str, str]] = {
    "status": "(r.status || '') = :status",
    "reason": "r.reason = :reason",
    "agent_id": "(r.agent_id || '') = :agent_id",
    "due_before": "r.due_at < :due_before",
}
_KNOWN: Final[Mapping[_Index, frozenset[str]]] = {
    _Index.DUE: frozenset({"status", "due_before"}),
    _Index.CONVERSATION: frozenset(),
    _Index.WORKSPACE: frozenset(),
}


def page_of_idle_steps(conn: Connection, query: IdleQuery) -> IdlePage:
    """Give the next steps that the query fits, as far as one page looks."""
    index, values = _index(query), _values(query)
    looked = tuple(name for name in _LOOKED if getattr(query, name) is not None and name not in _KNOWN[index])
    edge = None
    if looked:
        found = _edge_statement(index).run(conn, values).first()
        edge = None if found is None else _place(query, found.id, must_instant(found.due_at))
        values |= _edge_values(edge)
    statement = _page_statement(index, looked, edge is not None)
    rows = [_shown(row) for row in statement.run(conn, values)]
    after = _place(query, rows[-1].row.id, rows[-1].row.due_at) if len(rows) == query.most else edge
    return IdlePage(rows, after)


def list_idle_steps(conn: Connection, query: IdleQuery) -> list[IdleStepShown]:
    """Give the first steps that the query fits, however far they are apart."""

    def read(most: int, after: IdlePlace | None) -> tuple[list[IdleStepShown], IdlePlace | None]:
        page = page_of_idle_steps(conn, replace(query, most=most, after=after))
        return page.rows, page.after

    return gather(read, query.after, query.most)


FIND: Final = sql(f"SELECT {_COLUMNS} FROM idle_steps r WHERE r.workspace_id = :workspace_id AND r.id = :id")


def find_idle_step(conn: Connection, workspace_id: str, step_id: str) -> IdleStepShown | None:
    """Give one of a workspace's steps, or None."""
    row = FIND.run(conn, {"workspace_id": workspace_id, "id": step_id}).first()
    return None if row is None else _shown(row)


FIND_SEQUENCE: Final = sql(
    f"""
    SELECT {_COLUMNS} FROM idle_steps r
    WHERE r.workspace_id = :workspace_id AND r.conversation_id = :conversation_id
        AND r.sequence_id = :sequence_id
    ORDER BY r.workspace_id, r.conversation_id, r.id
    """
)


def find_sequence(conn: Connection, step: IdleStepRow) -> list[IdleStepShown]:
    """Give all steps of the sequence that a step belongs to, the first one first."""
    values = {
        "workspace_id": step.workspace_id,
        "conversation_id": step.conversation_id,
        "sequence_id": step.sequence_id,
    }
    return [_shown(row) for row in FIND_SEQUENCE.run(conn, values)]


def _shown(row: Row[Any]) -> IdleStepShown:
    return IdleStepShown(idle_step_row(row), row.holder_name)


def _index(query: IdleQuery) -> _Index:
    if query.is_by_due:
        return _Index.DUE
    return _Index.WORKSPACE if query.conversation_id is None else _Index.CONVERSATION


def _values(query: IdleQuery) -> dict[str, Any]:
    place = query.after or IdlePlace("" if query.is_by_due else _HIGHEST_ID)
    return {
        "workspace_id": query.workspace_id,
        "status": query.status,
        "reason": query.reason,
        "conversation_id": query.conversation_id,
        "agent_id": query.agent_id,
        "due_before": write_instant(query.due_before) if query.due_before else _LAST_DUE,
        "due_at": write_instant(place.due_at) if place.due_at else _FIRST_DUE,
        "id": place.id,
        "most": query.most,
        "skipped": SCANNED - 1,
    }


def _place(query: IdleQuery, id_: str, due_at: datetime) -> IdlePlace:
    return IdlePlace(id_, due_at if query.is_by_due else None)


def _edge_values(edge: IdlePlace | None) -> dict[str, Any]:
    if edge is None:
        return {}
    return {"edge_id": edge.id, "edge_due": write_instant(edge.due_at) if edge.due_at else None}


@lru_cache
def _page_statement(index: _Index, looked: tuple[str, ...], has_edge: object) -> Sql:
    """Make the page's statement for what is asked; each combination is compiled once."""
    clauses = [_BOUNDS[index], *(_LOOKED[name] for name in looked)]
    if has_edge:
        clauses.append(_TO_EDGE[index])
    return sql(
        f"SELECT {_COLUMNS} FROM idle_steps r WHERE {' AND '.join(clauses)}"
        f" ORDER BY {_order(index)} LIMIT :most"
    )


@lru_cache
def _edge_statement(index: _Index) -> Sql:
    return sql(
        f"SELECT r.id, r.due_at FROM idle_steps r WHERE {_BOUNDS[index]}"
        f" ORDER BY {_order(index)} LIMIT 1 OFFSET :skipped"
    )


def _order(index: _Index) -> str:
    return index.value if index is _Index.DUE else downward(index)
