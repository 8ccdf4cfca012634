"""What a person does to pending executions: cancel one, delete them with their automation."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.sql import Sql, sql
from shared.db.types import read_instant, write_instant
from shared.model.pending import WAITING, PendingStatus, check_pending_move

# Not ended: until its episode is, the row keeps it from being armed a second time.
CANCEL: Final = sql(
    """
    UPDATE pending_executions SET status = 'skipped', skip_reason = 'cancelled', claimed_at = NULL,
        version = version + 1, updated_at = :now
    WHERE id = :id AND workspace_id = :workspace_id AND (status || '') IN ('pending', 'processing')
    """
)


def cancel_pending(conn: Connection, workspace_id: str, pending_id: str, *, now: datetime) -> bool:
    """Move one that waits, or that a sweep has just claimed, to skipped; tell whether it did."""
    check_pending_move(PendingStatus.PENDING, PendingStatus.SKIPPED)
    check_pending_move(PendingStatus.PROCESSING, PendingStatus.SKIPPED)
    which = {"id": pending_id, "workspace_id": workspace_id, "now": write_instant(now)}
    return CANCEL.run(conn, which).rowcount == 1


DELETE_OF_AUTOMATION: Final = sql(
    """
    WITH k AS (SELECT r.id, r.status FROM pending_executions r WHERE r.automation_id = :automation_id
        ORDER BY r.id {lock})
    DELETE FROM pending_executions WHERE id IN (SELECT k.id FROM k) RETURNING status
    """
)


def delete_pending_of(conn: Connection, automation_id: str) -> int:
    """Delete all that an automation keeps; tell how many of them still waited."""
    rows = DELETE_OF_AUTOMATION.run(conn, {"automation_id": automation_id})
    return sum(status in WAITING for status in rows.scalars())


@dataclass(frozen=True, slots=True)
class Overdue:
    """How many wait, and how many of them are due; both stop at a number. `since` is the first one's hour."""

    waiting: int
    due: int
    since: datetime | None


# Each count walks along the index of what waits, and no farther than to the number that is asked for.
OVERDUE: Final = sql(
    """
    SELECT (SELECT count(*) FROM (
            SELECT 1 FROM pending_executions r WHERE r.status = 'pending' ORDER BY r.due_at LIMIT :most
        ) k) AS waiting,
        (SELECT count(*) FROM (
            SELECT 1 FROM pending_executions r WHERE r.status = 'pending' AND r.due_at <= :now
            ORDER BY r.due_at LIMIT :most
        ) k) AS due,
        (SELECT min(r.due_at) FROM pending_executions r WHERE r.status = 'pending' AND r.due_at <= :now)
            AS since
    """
)


def count_overdue(conn: Connection, *, now: datetime, most: int) -> Overdue:
    """Count what waits and what is due of it, of all workspaces."""
    return overdue_of(conn, OVERDUE, now=now, most=most)


def overdue_of(conn: Connection, statement: Sql, *, now: datetime, most: int) -> Overdue:
    """Count by a statement like `OVERDUE`, about whichever table."""
    row = statement.run(conn, {"now": write_instant(now), "most": most}).one()
    return Overdue(row.waiting, row.due, read_instant(row.since))
