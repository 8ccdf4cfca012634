"""What a connection executes, and the plans that the database chooses for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event


@contextmanager
def statements(conn: Connection) -> Iterator[list[tuple[str, Any]]]:
    """Collect what is executed, as the driver gets it."""
    seen: list[tuple[str, Any]] = []

    def note(_: object, __: object, statement: str, values: Any, *___: object) -> None:
        seen.append((statement, values))

    event.listen(conn, "before_cursor_execute", note)
    yield seen
    event.remove(conn, "before_cursor_execute", note)


def explain(conn: Connection, statement: str, values: Any) -> str:
    """Give the plan of a statement as one text."""
    word = "EXPLAIN QUERY PLAN" if conn.dialect.name == "sqlite" else "EXPLAIN"
    rows = conn.exec_driver_sql(f"{word} {statement}", values).all()
    return "\n".join(" ".join(str(part) for part in row) for row in rows)
