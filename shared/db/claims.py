"""Claims and leases: which process may act on a run, and for how long it may be silent."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sheet import put_ids
from shared.db.sql import sql
from shared.db.types import must_instant, read_json, write_instant
from shared.model.moves import RunStatus, check_move
from shared.model.runs import Claim, ClaimedRun, FinishedAction, Look, QueueKind, RunSource
from shared.model.stamps import parse_stamp

EARLY: Final = timedelta(seconds=1)

# The status is compared through an expression so that no plan can choose the status index over the ids.
CLAIM_RUNS: Final = sql(
    """
    WITH wanted AS MATERIALIZED (SELECT x.id FROM {rows}),
    k AS MATERIALIZED (
        SELECT r.id FROM automation_runs r JOIN wanted w ON w.id = r.id
        LEFT JOIN automations a ON a.id = r.automation_id
        WHERE (r.status || '') = 'PENDING'
            AND (r.next_attempt_at IS NULL OR r.next_attempt_at <= :early)
            AND (a.id IS NULL OR a.status = 'ACTIVE' OR a.deleted_at IS NOT NULL OR r.lease = 0)
        ORDER BY r.id {lock})
    UPDATE automation_runs SET status = 'RUNNING', lease = lease + 1, lease_until = :lease_until,
        owner = :owner,
        started_at = COALESCE(started_at, :now), next_attempt_at = NULL
    FROM k WHERE automation_runs.id = k.id
    RETURNING automation_runs.id AS id, lease, workspace_id, automation_id, source, source_id, trigger_type,
        input, event, depth, root_run_id, retry_count, failures, crash_count, started_at, queue, stop_reason,
        subject_type, subject_id, seen, created_at, title
    """,
    id="text",
)


@dataclass(frozen=True, slots=True)
class Lessee:
    """Who claims, when, and for how long the claim stands without a renewal."""

    owner: str
    now: datetime
    lease: timedelta


def claim_runs(conn: Connection, run_ids: Sequence[str], lessee: Lessee) -> list[ClaimedRun]:
    """Move PENDING runs to RUNNING under a new lease; give those that are now ours, in the order asked for.

    Left out: what is not PENDING, waits for a later attempt, or belongs to a paused automation after its
    first attempt (`docs/automations.md`, "Pausing"). A second call finds nothing to claim.
    """
    check_move(RunStatus.PENDING, RunStatus.RUNNING)
    now = write_instant(lessee.now)
    rows = CLAIM_RUNS.run_set(
        conn,
        ({"id": run_id} for run_id in run_ids),
        now=now,
        early=write_instant(lessee.now + EARLY),
        lease_until=write_instant(lessee.now + lessee.lease),
        owner=lessee.owner,
    ).all()
    resumed = [row.id for row in rows if row.lease > 1]
    finished = finished_actions(conn, resumed) if resumed else {}
    claimed = {row.id: _claimed(row, finished.get(row.id, ())) for row in rows}
    return [claimed[run_id] for run_id in dict.fromkeys(run_ids) if run_id in claimed]


def _claimed(row: Any, finished: tuple[FinishedAction, ...]) -> ClaimedRun:
    return ClaimedRun(
        claim=Claim(row.id, row.lease),
        workspace_id=row.workspace_id,
        automation_id=row.automation_id,
        source=RunSource(row.source),
        source_id=row.source_id,
        trigger_type=row.trigger_type,
        event=read_json(row.event) or read_json(row.input),
        depth=row.depth,
        root_run_id=row.root_run_id,
        retry_count=row.retry_count,
        failures=row.failures,
        crash_count=row.crash_count,
        started_at=must_instant(row.started_at),
        queue=QueueKind(row.queue),
        stop_reason=row.stop_reason,
        finished=finished,
        look=_look(row),
        title=row.title,
    )


def _look(row: Any) -> Look | None:
    if row.seen is None:
        return None
    return Look((row.subject_type, row.subject_id), parse_stamp(row.seen), must_instant(row.created_at))


FIND_CLAIMED: Final = sql(
    """
    SELECT id, lease, workspace_id, automation_id, source, source_id, trigger_type, input, event, depth,
        root_run_id, retry_count, failures, crash_count, started_at, queue, stop_reason,
        subject_type, subject_id, seen, created_at, title
    FROM automation_runs WHERE id = :id AND lease = :lease AND (status || '') = 'RUNNING'
    """
)


def find_claimed(conn: Connection, claim: Claim) -> ClaimedRun | None:
    """Give a run whose claim still stands, for a process that takes it over with the claim.

    None if it does not.
    """
    row = FIND_CLAIMED.run(conn, {"id": claim.run_id, "lease": claim.lease}).first()
    if row is None:
        return None
    return _claimed(row, finished_actions(conn, [claim.run_id]).get(claim.run_id, ()))


FINISHED_ACTIONS: Final = sql(
    """
    SELECT d.run_id, d.position, d.type, d.output FROM run_actions d JOIN {rows} ON d.run_id = x.id
    ORDER BY d.run_id, d.position
    """,
    id="text",
)


def finished_actions(conn: Connection, run_ids: Iterable[str]) -> dict[str, tuple[FinishedAction, ...]]:
    """Give each run's checkpoints in the order of their positions."""
    found: dict[str, tuple[FinishedAction, ...]] = {}
    for row in FINISHED_ACTIONS.run_set(conn, ({"id": run_id} for run_id in run_ids)):
        done = FinishedAction(row.position, row.type, read_json(row.output))
        found[row.run_id] = (*found.get(row.run_id, ()), done)
    return found


LOCK_CLAIMS: Final = sql(
    """
    SELECT r.id, r.lease, r.stop_reason, r.failures, r.crash_count
    FROM automation_runs r JOIN {rows} ON r.id = x.id
    WHERE r.lease = x.lease AND (r.status || '') = 'RUNNING' ORDER BY r.id {lock}
    """,
    id="text",
    lease="bigint",
)


@dataclass(frozen=True, slots=True)
class Held:
    """A claim that still stands; `stop_reason` is set when a person wants the run to end.

    The counts are those of now: an action that succeeds under a claim starts them anew.
    """

    claim: Claim
    stop_reason: str | None
    failures: int
    crash_count: int


def lock_claims(conn: Connection, claims: Iterable[Claim]) -> dict[str, Held]:
    """Lock the runs whose claim still stands until the transaction ends; the others were taken over."""
    rows = LOCK_CLAIMS.run_set(conn, ({"id": claim.run_id, "lease": claim.lease} for claim in claims))
    return {
        row.id: Held(Claim(row.id, row.lease), row.stop_reason, row.failures, row.crash_count) for row in rows
    }


RENEW_LEASES: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM automation_runs r JOIN {rows} ON r.id = x.id
        WHERE r.lease = x.lease AND (r.status || '') = 'RUNNING' ORDER BY r.id {lock})
    UPDATE automation_runs SET lease_until = :until FROM k WHERE automation_runs.id = k.id
    RETURNING automation_runs.id AS id
    """,
    id="text",
    lease="bigint",
)


def renew_leases(conn: Connection, claims: Sequence[Claim], until: datetime) -> frozenset[str]:
    """Extend the leases that still stand to `until`; give the ids of those runs.

    The others were taken over.
    """
    return put_ids(
        conn,
        RENEW_LEASES,
        ({"id": claim.run_id, "lease": claim.lease} for claim in claims),
        until=write_instant(until),
    )
