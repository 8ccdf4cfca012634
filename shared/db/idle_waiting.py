"""Idle steps that wait: how many of all workspaces, how late the first one is; one disarmed by a person."""

from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.pending_moves import Overdue
from shared.db.sql import sql
from shared.db.types import read_instant, write_instant
from shared.model.idle_steps import IdleStatus, check_idle_move

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


DISARM: Final = sql(
    """
    UPDATE idle_steps SET status = 'stopped', reason = 'disarmed', ended_at = :now, updated_at = :now,
        version = version + 1
    WHERE id = :id AND workspace_id = :workspace_id AND (status || '') = 'pending'
    """
)


def disarm_step(conn: Connection, workspace_id: str, step_id: str, *, now: datetime) -> bool:
    """Move a step that waits to stopped; tell whether it did. One that a sweep has claimed stays as it is."""
    check_idle_move(IdleStatus.PENDING, IdleStatus.STOPPED)
    which = {"id": step_id, "workspace_id": workspace_id, "now": write_instant(now)}
    return DISARM.run(conn, which).rowcount == 1
