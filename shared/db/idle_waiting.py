"""Idle steps that wait, of all workspaces: how many, and how late the first one is."""

from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.pending_moves import Overdue
from shared.db.sql import sql
from shared.db.types import read_instant, write_instant

# As `OVERDUE` of pending executions: no count walks farther than to the number that is asked for.
IDLE_OVERDUE: Final = sql(
    """
    SELECT (SELECT count(*) FROM (
            SELECT 1 FROM idle_steps r WHERE r.status = 'pending' ORDER BY r.due_at LIMIT :most
        ) k) AS waiting,
        (SELECT count(*) FROM (
            SELECT 1 FROM idle_steps r WHERE r.status = 'pending' AND r.due_at <= :now
            ORDER BY r.due_at LIMIT :most
        ) k) AS due,
        (SELECT min(r.due_at) FROM idle_steps r WHERE r.status = 'pending' AND r.due_at <= :now) AS since
    """
)


def count_idle_overdue(conn: Connection, *, now: datetime, most: int) -> Overdue:
    """Count what waits and what is due of it."""
    row = IDLE_OVERDUE.run(conn, {"now": write_instant(now), "most": most}).one()
    return Overdue(row.waiting, row.due, read_instant(row.since))
