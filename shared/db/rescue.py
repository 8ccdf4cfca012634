"""The watchdog's moves: runs whose worker died, and runs that wait though nothing will wake them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sheet import put_ids
from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, write_instant
from shared.model.moves import RunStatus, check_move
from shared.model.runs import Claim, QueueKind, RunError

EXPIRED: Final = sql(
    """
    SELECT r.id, r.lease, r.lease_until FROM automation_runs r
    WHERE r.status = 'RUNNING' AND r.lease_until < :now ORDER BY r.lease_until LIMIT :most
    """
)


@dataclass(frozen=True, slots=True)
class ExpiredLease:
    """A claim whose lease ran out; it is reclaimed only when a later look finds it unchanged."""

    claim: Claim
    lease_until: datetime


def expired_leases(conn: Connection, *, now: datetime, most: int) -> list[ExpiredLease]:
    """Give claims whose lease has run out, longest first."""
    rows = EXPIRED.run(conn, {"now": write_instant(now), "most": most})
    return [ExpiredLease(Claim(row.id, row.lease), must_instant(row.lease_until)) for row in rows]


LOCK_EXPIRED: Final = sql(
    """
    SELECT r.id, r.lease, r.workspace_id, r.automation_id, r.trigger_type, r.depth, r.root_run_id,
        r.retry_count,
        r.failures, r.crash_count, r.owner, r.started_at, r.queue, r.created_at, r.title
    FROM automation_runs r JOIN {rows} ON r.id = x.id
    WHERE r.lease = x.lease AND r.lease_until = x.lease_until AND (r.status || '') = 'RUNNING'
    ORDER BY r.id {skip_locked}
    """,
    id="text",
    lease="bigint",
    lease_until="timestamptz",
)


@dataclass(frozen=True, slots=True)
class CrashedRun:
    """A run whose worker fell silent, locked by us until the transaction ends."""

    claim: Claim
    workspace_id: str
    automation_id: str | None
    trigger_type: str
    depth: int
    root_run_id: str
    retry_count: int
    failures: int
    crash_count: int
    owner: str
    started_at: datetime | None
    queue: QueueKind
    title: str | None


def lock_expired(conn: Connection, leases: Iterable[ExpiredLease]) -> list[CrashedRun]:
    """Lock the runs whose lease is as it was seen; skip what was renewed and what somebody else holds."""
    rows = LOCK_EXPIRED.run_set(
        conn,
        (
            {
                "id": seen.claim.run_id,
                "lease": seen.claim.lease,
                "lease_until": write_instant(seen.lease_until),
            }
            for seen in leases
        ),
    )
    return [_crashed(row) for row in rows]


def _crashed(row: Row[Any]) -> CrashedRun:
    return CrashedRun(
        claim=Claim(row.id, row.lease),
        workspace_id=row.workspace_id,
        automation_id=row.automation_id,
        trigger_type=row.trigger_type,
        depth=row.depth,
        root_run_id=row.root_run_id,
        retry_count=row.retry_count,
        failures=row.failures,
        crash_count=row.crash_count,
        owner=row.owner or "",
        started_at=read_instant(row.started_at),
        queue=QueueKind(row.queue),
        title=row.title,
    )


RESCUE_RUNS: Final = sql(
    """
    UPDATE automation_runs SET status = 'PENDING', retry_count = retry_count + 1, failures = failures + 1,
        crash_count = crash_count + 1, lease_until = NULL, enqueued_at = :now, next_attempt_at = NULL
    FROM {rows}
    WHERE automation_runs.id = x.id AND automation_runs.lease = x.lease
        AND (automation_runs.status || '') = 'RUNNING'
    RETURNING automation_runs.id AS id
    """,
    id="text",
    lease="bigint",
)


def rescue_runs(conn: Connection, claims: Sequence[Claim], *, now: datetime) -> frozenset[str]:
    """Move crashed runs from RUNNING back to PENDING, one retry and one crash more; give those that moved."""
    check_move(RunStatus.RUNNING, RunStatus.PENDING)
    return put_ids(
        conn,
        RESCUE_RUNS,
        ({"id": claim.run_id, "lease": claim.lease} for claim in claims),
        now=write_instant(now),
    )


BURY_RUNS: Final = sql(
    """
    UPDATE automation_runs SET status = 'DEAD_LETTER', error = x.error, crash_count = crash_count + 1,
        lease_until = NULL, ended_at = :now
    FROM {rows}
    WHERE automation_runs.id = x.id AND automation_runs.lease = x.lease
        AND (automation_runs.status || '') = 'RUNNING'
    RETURNING automation_runs.id AS id
    """,
    id="text",
    lease="bigint",
    error="jsonb",
)


def bury_runs(conn: Connection, dead: Sequence[tuple[Claim, RunError]], *, now: datetime) -> frozenset[str]:
    """Move crashed runs that have no attempt left from RUNNING to DEAD_LETTER; give those that moved."""
    check_move(RunStatus.RUNNING, RunStatus.DEAD_LETTER)
    return put_ids(
        conn,
        BURY_RUNS,
        (
            {
                "id": claim.run_id,
                "lease": claim.lease,
                "error": {"code": error.code, "message": error.message, "position": error.position},
            }
            for claim, error in dead
        ),
        now=write_instant(now),
    )


WAITING: Final = sql(
    """
    SELECT r.id, r.queue, r.enqueued_at, r.next_attempt_at, r.created_at, r.workspace_id, r.automation_id
    FROM automation_runs r LEFT JOIN automations a ON a.id = r.automation_id
    WHERE r.status = 'PENDING' AND r.enqueued_at < :before AND r.queue = :queue
        AND (r.next_attempt_at IS NULL OR r.next_attempt_at < :before)
        AND (a.id IS NULL OR a.status = 'ACTIVE' OR a.deleted_at IS NOT NULL OR r.lease = 0)
    ORDER BY r.enqueued_at LIMIT :most
    """
)


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A PENDING run that could have started at `due_at`."""

    id: str
    workspace_id: str
    automation_id: str | None
    due_at: datetime


def waiting_runs(conn: Connection, queue: QueueKind, *, before: datetime, most: int) -> list[WaitingRun]:
    """Give runs of one queue that have been due since before `before`, oldest first."""
    rows = WAITING.run(conn, {"queue": queue, "before": write_instant(before), "most": most})
    return [
        WaitingRun(
            row.id,
            row.workspace_id,
            row.automation_id,
            max(
                must_instant(row.enqueued_at),
                read_instant(row.next_attempt_at) or must_instant(row.enqueued_at),
            ),
        )
        for row in rows
    ]


TOUCH_WAITING: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM automation_runs r JOIN {rows} ON r.id = x.id
        WHERE (r.status || '') = 'PENDING' ORDER BY r.id {lock})
    UPDATE automation_runs SET enqueued_at = :now, queue = :queue FROM k WHERE automation_runs.id = k.id
    RETURNING automation_runs.id AS id
    """,
    id="text",
)


def touch_waiting(conn: Connection, run_ids: Iterable[str], queue: QueueKind, *, now: datetime) -> list[str]:
    """Note that these runs are given a new handle at `now`; give those that are still PENDING."""
    rows = TOUCH_WAITING.run_set(
        conn, ({"id": run_id} for run_id in run_ids), now=write_instant(now), queue=queue
    )
    return [row.id for row in rows]
