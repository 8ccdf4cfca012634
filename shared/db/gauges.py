"""How much stands in the tables right now, for metrics: reads of partial indexes, each of them bounded.

Nothing is counted beyond `COUNTED`, and a read that takes too long is broken off, so that whoever asks often
takes nothing from those who work.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from shared.db.alerts import waiting
from shared.db.idle_waiting import count_idle_overdue
from shared.db.locks import WATCHDOG, is_lock_held
from shared.db.pending_moves import Overdue, count_overdue
from shared.db.server_clock import clock_skew
from shared.db.sql import sql
from shared.db.types import read_instant, write_instant

COUNTED: Final = 10_000
LOOKED_AT: Final = 2_000

# On PostgreSQL alone: SQLite's reads end by themselves, since they wait for nobody.
LIMIT_TIME: Final = sql("SET LOCAL statement_timeout = '3s'")

COUNTS: Final = sql(
    """
    SELECT (SELECT count(*) FROM (
            SELECT 1 FROM automation_runs r WHERE r.status = 'RUNNING' ORDER BY r.lease_until LIMIT :most
        ) k) AS running,
        (SELECT count(*) FROM (
            SELECT 1 FROM automation_runs r WHERE r.status = 'PENDING' ORDER BY r.enqueued_at LIMIT :most
        ) k) AS pending,
        (SELECT count(*) FROM (
            SELECT 1 FROM schedules r WHERE r.next_fire_at <= :now ORDER BY r.next_fire_at LIMIT :most
        ) k) AS schedules_due,
        (SELECT count(*) FROM (
            SELECT 1 FROM outbox r WHERE r.sent_at IS NULL ORDER BY r.created_at LIMIT :most
        ) k) AS unsent,
        (SELECT min(r.created_at) FROM outbox r WHERE r.sent_at IS NULL) AS unsent_since,
        (SELECT count(*) FROM (SELECT 1 FROM alerts r ORDER BY r.id LIMIT :most) k) AS unfolded,
        (SELECT count(*) FROM (
            SELECT 1 FROM alert_sends r WHERE r.due_at IS NOT NULL ORDER BY r.due_at LIMIT :most
        ) k) AS sends
    """
)

# A run of a paused automation waits for a person once it has been claimed, and one in backoff for its time.
# The automation is asked for by a value, not by a join, so that no plan can read all automations.
OLDEST_WAITING: Final = sql(
    """
    SELECT min(CASE WHEN k.next_attempt_at > k.enqueued_at THEN k.next_attempt_at ELSE k.enqueued_at END)
        AS since
    FROM (
        SELECT r.automation_id, r.enqueued_at, r.next_attempt_at, r.lease FROM automation_runs r
        WHERE r.status = 'PENDING' ORDER BY r.enqueued_at LIMIT :looked_at
    ) k
    WHERE (k.next_attempt_at IS NULL OR k.next_attempt_at <= :now)
        AND (k.lease = 0 OR (
            SELECT a.id FROM automations a
            WHERE a.id = k.automation_id AND a.status <> 'ACTIVE' AND a.deleted_at IS NULL) IS NULL)
    """
)


@dataclass(frozen=True, slots=True)
class Gauges:
    """What was read. Counts stop at `COUNTED`; an instant is None where nothing waits.

    `skew` is by how much our clock is ahead of the server's, None where both are one.
    """

    running: int
    pending: int
    waiting_since: datetime | None
    schedules_due: int
    delayed: Overdue
    idle: Overdue
    unsent: int
    unsent_since: datetime | None
    alerts: int
    alerts_since: datetime | None
    is_watched: bool
    skew: timedelta | None


def read_gauges(conn: Connection, *, now: datetime) -> Gauges:
    """Read all of it in one transaction that only reads."""
    if conn.dialect.name == "postgresql":
        LIMIT_TIME.run(conn)
    at = write_instant(now)
    counts = COUNTS.run(conn, {"now": at, "most": COUNTED}).one()
    oldest = OLDEST_WAITING.run(conn, {"now": at, "looked_at": LOOKED_AT}).one()
    alerts = waiting(conn)
    return Gauges(
        running=counts.running,
        pending=counts.pending,
        waiting_since=read_instant(oldest.since),
        schedules_due=counts.schedules_due,
        delayed=count_overdue(conn, now=now, most=COUNTED),
        idle=count_idle_overdue(conn, now=now, most=COUNTED),
        unsent=counts.unsent,
        unsent_since=read_instant(counts.unsent_since),
        alerts=counts.unfolded + counts.sends,
        alerts_since=min(filter(None, (alerts.unfolded, alerts.undecided, alerts.unsent)), default=None),
        is_watched=is_lock_held(conn, WATCHDOG, now=now),
        skew=clock_skew(conn, now),
    )
