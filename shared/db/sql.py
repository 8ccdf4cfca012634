"""Statements: written once, read by both dialects, and taking a whole set of rows as one JSON parameter.

A template names a set of rows as `{rows}`, `FOR UPDATE` as `{lock}`, and the few functions that differ by the
names in `_WORDS`. Each statement is a constant text per dialect, so it is compiled once whatever the set's
size.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from sqlalchemy import Connection, CursorResult, TextClause, text

FIRST: Final = ""  # sorts before every id and name: a list begins behind it
ALL: Final = 2**31 - 1  # no list is as long

_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "postgresql": {
        "{lock}": "FOR UPDATE OF r",
        "{skip_locked}": "FOR UPDATE OF r SKIP LOCKED",
        "{json}": "jsonb",
        "{json_list}": "jsonb_agg",
        "{json_merge}": "jsonb_concat",
        "{xid}": "CAST(CAST(pg_current_xact_id() AS text) AS bigint)",
    },
    "sqlite": {
        "{lock}": "",
        "{skip_locked}": "",
        "{json}": "text",
        "{json_list}": "json_group_array",
        "{json_merge}": "json_patch",
        "{xid}": "0",
    },
}


@dataclass(frozen=True, slots=True, eq=False)
class Sql:
    """One statement in both dialects. Each is a constant, and equal only to itself."""

    postgresql: TextClause
    sqlite: TextClause

    def run(self, conn: Connection, params: Mapping[str, Any] | None = None) -> CursorResult[Any]:
        """Execute it on `conn` with named parameters."""
        clause = self.sqlite if conn.dialect.name == "sqlite" else self.postgresql
        return conn.execute(clause, dict(params or {}))

    def run_set(
        self, conn: Connection, rows: Iterable[Mapping[str, Any]], **params: Any
    ) -> CursorResult[Any]:
        """Execute it on `conn` for a whole set of rows, given as the parameter `p`."""
        return self.run(conn, {"p": json_rows(rows), **params})

    def about(self, table: str, other: str) -> "Sql":
        """Give the same statement about another table, whose columns of these names mean the same."""
        return Sql(*(text(each.text.replace(table, other)) for each in (self.postgresql, self.sqlite)))


def sql(template: str, **columns: str) -> Sql:
    """Make a statement; `columns` are the names and PostgreSQL types of one row of `{rows}`."""
    postgres_rows = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    sqlite_rows = ", ".join(f"json_extract(value, '$.{name}') AS {name}" for name in columns)
    return Sql(
        postgresql=_fill(
            template, "postgresql", f"jsonb_to_recordset(CAST(:p AS jsonb)) AS x({postgres_rows})"
        ),
        sqlite=_fill(template, "sqlite", f"(SELECT {sqlite_rows} FROM json_each(:p)) AS x"),
    )


def json_rows(rows: Iterable[Mapping[str, Any]]) -> str:
    """Encode a set of rows; instants become the text that both dialects compare."""
    return orjson.dumps(list(rows)).decode()


def _fill(template: str, dialect: str, rows: str) -> TextClause:
    filled = template.replace("{rows}", rows)
    for word, meaning in _WORDS[dialect].items():
        filled = filled.replace(word, meaning)
    return text(filled)
