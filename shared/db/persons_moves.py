"""What a person does to runs: replay, cancel, stop. Each is a compare-and-set that says what it changed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import sql
from shared.db.types import read_instant, write_instant
from shared.model.executed import EndedRun, duration_ms
from shared.model.moves import RunStatus, check_move
from shared.model.runs import QueueKind

AUTOMATION_DELETED: Final = "AUTOMATION_DELETED"
CANCELLED: Final = "CANCELLED"


@dataclass(frozen=True, slots=True)
class WokenRun:
    """A run that has to be given a handle once the transaction is committed."""

    id: str
    automation_id: str | None
    queue: QueueKind


REPLAY_RUNS: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM automation_runs r JOIN {rows} ON r.id = x.id
        WHERE (r.status || '') IN ('FAILED', 'DEAD_LETTER') ORDER BY r.id {lock})
    UPDATE automation_runs SET status = 'PENDING', retry_count = 0, failures = 0, crash_count = 0,
        next_attempt_at = NULL, enqueued_at = :now, ended_at = NULL, stop_reason = NULL, fingerprint = NULL,
        queue = CASE WHEN :queue = '' THEN automation_runs.queue ELSE :queue END
    FROM k WHERE automation_runs.id = k.id
    RETURNING automation_runs.id AS id, automation_id, queue
    """,
    id="text",
)


def replay_runs(
    conn: Connection, run_ids: Iterable[str], *, now: datetime, queue: QueueKind | None = None
) -> list[WokenRun]:
    """Move runs from FAILED or DEAD_LETTER to PENDING with fresh counts; give those that moved, by id.

    Attempts and checkpoints stay, so they resume at the action that failed. Without a `queue` each uses the
    one that it had. A second call finds none to move.
    """
    check_move(RunStatus.FAILED, RunStatus.PENDING)
    check_move(RunStatus.DEAD_LETTER, RunStatus.PENDING)
    rows = REPLAY_RUNS.run_set(
        conn, ({"id": run_id} for run_id in run_ids), now=write_instant(now), queue=queue or ""
    )
    woken = [WokenRun(row.id, row.automation_id, QueueKind(row.queue)) for row in rows]
    return sorted(woken, key=lambda run: run.id)


FORGET_ACTIONS: Final = sql(
    "DELETE FROM run_actions WHERE run_id IN (SELECT x.id FROM {rows})",
    id="text",
)


def forget_actions(conn: Connection, run_ids: Iterable[str]) -> int:
    """Drop the checkpoints of runs that this transaction has moved to PENDING; tell how many there were."""
    return FORGET_ACTIONS.run_set(conn, ({"id": run_id} for run_id in run_ids)).rowcount


CANCEL_RUN: Final = sql(
    """
    UPDATE automation_runs SET status = 'CANCELLED', next_attempt_at = NULL, ended_at = :now,
        stop_reason = :reason
    WHERE id = :id AND (status || '') = 'PENDING'
    RETURNING id, workspace_id, automation_id, root_run_id, trigger_type, depth, started_at,
        title
    """
)


def cancel_run(conn: Connection, run_id: str, *, now: datetime) -> EndedRun | None:
    """Move a run from PENDING to CANCELLED and give its end; None when it was not PENDING.

    Here and below `stop_reason` keeps why.
    """
    check_move(RunStatus.PENDING, RunStatus.CANCELLED)
    row = CANCEL_RUN.run(conn, {"id": run_id, "now": write_instant(now), "reason": CANCELLED}).first()
    return _cancelled(row, now) if row else None


CANCEL_RUNS: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM automation_runs r JOIN {rows} ON r.id = x.id
        WHERE (r.status || '') = 'PENDING' ORDER BY r.id {lock})
    UPDATE automation_runs SET status = 'CANCELLED', next_attempt_at = NULL, ended_at = :now,
        stop_reason = :reason
    FROM k WHERE automation_runs.id = k.id
    RETURNING automation_runs.id AS id, workspace_id, automation_id, root_run_id, trigger_type, depth,
        started_at, title
    """,
    id="text",
)


def cancel_runs(conn: Connection, run_ids: Iterable[str], *, now: datetime) -> list[EndedRun]:
    """Move those of these runs that are PENDING to CANCELLED; give their ends, oldest run first."""
    check_move(RunStatus.PENDING, RunStatus.CANCELLED)
    rows = CANCEL_RUNS.run_set(
        conn, ({"id": run_id} for run_id in run_ids), now=write_instant(now), reason=CANCELLED
    )
    return sorted((_cancelled(row, now) for row in rows), key=lambda run: run.run_id)


def _cancelled(row: Row[Any], now: datetime) -> EndedRun:
    return EndedRun(
        run_id=row.id,
        workspace_id=row.workspace_id,
        automation_id=row.automation_id,
        root_run_id=row.root_run_id,
        trigger_type=row.trigger_type,
        depth=row.depth,
        status=RunStatus.CANCELLED,
        duration_ms=duration_ms(read_instant(row.started_at), now),
        error=None,
        title=row.title,
    )


STOP_RUN: Final = sql(
    """
    UPDATE automation_runs SET stop_reason = :reason
    WHERE id = :id AND (status || '') = 'RUNNING' AND stop_reason IS NULL
    """
)


def stop_run(conn: Connection, run_id: str, reason: str) -> bool:
    """Ask a RUNNING run to end FAILED with `reason` before its next action; False when it is not running."""
    return STOP_RUN.run(conn, {"id": run_id, "reason": reason}).rowcount == 1


CANCEL_WAITING: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM automation_runs r
        WHERE r.automation_id = :automation_id AND (r.status || '') = 'PENDING' ORDER BY r.id {lock})
    UPDATE automation_runs SET status = 'CANCELLED', next_attempt_at = NULL, ended_at = :now,
        stop_reason = :reason
    FROM k WHERE automation_runs.id = k.id
    RETURNING automation_runs.id AS id, workspace_id, automation_id, root_run_id, trigger_type, depth,
        started_at, title
    """
)


def cancel_runs_of(conn: Connection, automation_id: str, *, now: datetime) -> list[EndedRun]:
    """Cancel what waits of an automation that is being deleted; give the ends, oldest run first."""
    check_move(RunStatus.PENDING, RunStatus.CANCELLED)
    values = {"automation_id": automation_id, "now": write_instant(now), "reason": AUTOMATION_DELETED}
    ended = [_cancelled(row, now) for row in CANCEL_WAITING.run(conn, values)]
    return sorted(ended, key=lambda run: run.run_id)


STOP_RUNNING: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM automation_runs r
        WHERE r.automation_id = :automation_id AND (r.status || '') = 'RUNNING' ORDER BY r.id {lock})
    UPDATE automation_runs SET stop_reason = :reason FROM k WHERE automation_runs.id = k.id
    RETURNING automation_runs.id AS id
    """
)


def stop_runs_of(conn: Connection, automation_id: str) -> list[str]:
    """Ask what runs of an automation that is being deleted to end before its next action; name it."""
    values = {"automation_id": automation_id, "reason": AUTOMATION_DELETED}
    return sorted(STOP_RUNNING.run(conn, values).scalars())


WAITING_OF: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM automation_runs r
        WHERE r.automation_id = :automation_id AND (r.status || '') = 'PENDING'
            AND (r.next_attempt_at IS NULL OR r.next_attempt_at <= :now)
        ORDER BY r.id LIMIT :most {lock})
    UPDATE automation_runs SET enqueued_at = :now FROM k WHERE automation_runs.id = k.id
    RETURNING automation_runs.id AS id, automation_id, queue
    """
)


def wake_runs_of(conn: Connection, automation_id: str, *, now: datetime, most: int) -> list[WokenRun]:
    """Give the due PENDING runs of an automation that becomes active, oldest first, as enqueued at `now`."""
    values = {"automation_id": automation_id, "now": write_instant(now), "most": most}
    woken = [
        WokenRun(row.id, row.automation_id, QueueKind(row.queue)) for row in WAITING_OF.run(conn, values)
    ]
    return sorted(woken, key=lambda run: run.id)


LOCK_WORKSPACE: Final = sql("SELECT r.id FROM workspaces r WHERE r.id = :id {lock}")


def lock_workspace(conn: Connection, workspace_id: str) -> bool:
    """Let no other change to this workspace's automations in until the end; False when it does not exist."""
    return LOCK_WORKSPACE.run(conn, {"id": workspace_id}).first() is not None
