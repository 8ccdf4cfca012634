"""Idle steps that wait: how many of all workspaces, how late the first one is; one disarmed by a person."""

from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.pending_moves import OVERDUE, Overdue, overdue_of
from shared.db.sql import sql
from shared.db.types import write_instant
from shared.model.idle_steps import IdleStatus, check_idle_move

IDLE_OVERDUE: Final = OVERDUE.about("pending_executions", "idle_steps")


def count_idle_overdue(conn: Connection, *, now: datetime, most: int) -> Overdue:
    """Count what waits and what is due of it."""
    return overdue_of(conn, IDLE_OVERDUE, now=now, most=most)


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
