"""Statements that are written together: on PostgreSQL as one statement, on SQLite one after another.

A journal's batch touches half a dozen tables. One statement saves as many round trips; the parts see none of
each other's rows, so only what does not build upon another part belongs on one sheet.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row, TextClause, text

from shared.db.sql import Sql, json_rows


class Sheet:
    """A set of statements with their rows, each statement at most once."""

    def __init__(self) -> None:
        """Start empty."""
        self._lines: dict[Sql, str] = {}
        self._params: dict[str, Any] = {}

    def add(self, statement: Sql, rows: Iterable[Mapping[str, Any]], **params: Any) -> None:
        """Enter a statement for a set of rows; without rows it is left out. `params` are shared by all."""
        given = list(rows)
        if given:
            self._lines[statement] = json_rows(given)
            self._params |= params

    def write(self, conn: Connection) -> None:
        """Execute what was entered."""
        if conn.dialect.name == "sqlite":
            for statement, rows in self._lines.items():
                statement.run(conn, {**self._params, "p": rows})
        elif self._lines:
            rows_of = {f"p{at}": rows for at, rows in enumerate(self._lines.values())}
            conn.execute(_joined(tuple(self._lines)), {**self._params, **rows_of})


@lru_cache(maxsize=256)
def _joined(statements: tuple[Sql, ...]) -> TextClause:
    parts = (
        f"part{at} AS ({statement.postgresql.text.replace(':p ', f':p{at} ')})"
        for at, statement in enumerate(statements)
    )
    return text(f"WITH {', '.join(parts)} SELECT 1")


def put(
    where: Connection | Sheet, statement: Sql, rows: Iterable[Mapping[str, Any]], **params: Any
) -> Sequence[Row[Any]]:
    """Execute a statement for a set of rows and give what it returns; on a sheet it is only entered.

    Without rows nothing is executed.
    """
    if isinstance(where, Sheet):
        where.add(statement, rows, **params)
        return ()
    given = list(rows)
    if not given:
        return ()
    result = statement.run_set(where, given, **params)
    return result.all() if result.returns_rows else ()


def put_ids(
    where: Connection | Sheet, statement: Sql, rows: Iterable[Mapping[str, Any]], **params: Any
) -> frozenset[str]:
    """Execute a statement as `put` does; give the ids of the rows that it says it changed."""
    return frozenset(row.id for row in put(where, statement, rows, **params))
