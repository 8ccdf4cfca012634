"""Rows for tests that care about one or two columns only: the others hold anything."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, Column, Connection, Integer, Table, insert

from shared.db.types import UtcDateTime


def add_row(conn: Connection, table: Table, **given: Any) -> None:
    """Write a row of what is given; each other column that must not be empty holds something."""
    needed = [column for column in table.columns if not column.nullable and column.autoincrement is not True]
    conn.execute(insert(table).values({column.name: _anything(column) for column in needed} | given))


def _anything(column: Column[Any]) -> Any:
    match column.type:
        case UtcDateTime():
            return datetime(2026, 1, 1, tzinfo=UTC)
        case JSON():
            return {}
        case Integer():
            return 1
    return "x"
