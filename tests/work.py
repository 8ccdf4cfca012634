"""How much a database does for what is read, by its own count and not by the clock."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event

from shared.db.engine import Database

STEP = 20


def work_of(database: Database, read: Callable[[Connection], object]) -> int:
    """Count the instructions (SQLite) or the rows looked at in all nodes of all plans (PostgreSQL)."""
    with database.read() as conn:
        counting = _steps if conn.dialect.name == "sqlite" else _rows
        with counting(conn) as counted:
            read(conn)
        return sum(counted)


@contextmanager
def _steps(conn: Connection) -> Iterator[list[int]]:
    counted: list[int] = []
    raw: Any = conn.connection.driver_connection
    raw.set_progress_handler(lambda: counted.append(STEP), STEP)
    yield counted
    raw.set_progress_handler(None, STEP)


@contextmanager
def _rows(conn: Connection) -> Iterator[list[int]]:
    counted: list[int] = []

    def explain(_conn: Connection, _cursor: object, statement: str, parameters: Any, *_more: object) -> None:
        with conn.connection.driver_connection.cursor() as cursor:  # type: ignore[union-attr]
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
            ((plan,),) = cursor.fetchall()
        counted.extend(_looked_at(plan[0]["Plan"]))

    event.listen(conn, "after_cursor_execute", explain)
    yield counted
    event.remove(conn, "after_cursor_execute", explain)


def _looked_at(node: Mapping[str, Any]) -> Iterator[int]:
    rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    yield round(rows * node["Actual Loops"])
    for part in node.get("Plans", ()):
        yield from _looked_at(part)
