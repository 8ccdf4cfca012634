"""Where a claimed run comes to rest: one function a move, each a compare-and-set on (id, lease, RUNNING).

The journal locks the claims first (`lock_claims`), so within its transaction every one of these succeeds; the
comparison stays, because it is what makes a late or repeated write harmless.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sheet import Sheet, put, put_ids
from shared.db.sql import sql
from shared.db.types import write_instant
from shared.model.moves import RunStatus, check_move
from shared.model.runs import Claim, DeadLettered, Failed, HandedBack, Retried, RunError, Succeeded
from shared.model.sizes import OUTPUT_SHOWN_BYTES, cut_for_show

FINISH_RUNS: Final = sql(
    """
    UPDATE automation_runs SET status = x.status, skip_reason = x.skip_reason, error = x.error,
        output = x.output,
        event = CASE WHEN x.status = 'SUCCEEDED' THEN NULL ELSE event END,
        ended_at = x.ended_at, lease_until = NULL, stop_reason = NULL
    FROM {rows}
    WHERE automation_runs.id = x.id AND automation_runs.lease = x.lease
        AND (automation_runs.status || '') = 'RUNNING'
    RETURNING automation_runs.id AS id
    """,
    id="text",
    lease="bigint",
    status="text",
    skip_reason="text",
    error="jsonb",
    output="jsonb",
    ended_at="timestamptz",
)

Ending = tuple[Claim, Succeeded | Failed | DeadLettered]


def finish_runs(where: Connection | Sheet, endings: Sequence[Ending], *, now: datetime) -> frozenset[str]:
    """Move claimed runs from RUNNING to their end; give the ids of those whose claim still held.

    A dead letter passes FAILED on its way, within the statement. On a sheet the answer is empty.
    """
    return put_ids(where, FINISH_RUNS, [_ended(*ending, now) for ending in endings])


def _ended(claim: Claim, outcome: Succeeded | Failed | DeadLettered, now: datetime) -> Mapping[str, Any]:
    row: dict[str, Any] = {"id": claim.run_id, "lease": claim.lease, "ended_at": now}
    match outcome:
        case Succeeded(skipped=skipped, output=output):
            check_move(RunStatus.RUNNING, RunStatus.SUCCEEDED)
            row |= {"status": RunStatus.SUCCEEDED, "skip_reason": skipped}
            row["output"] = {"skipped": skipped} if skipped else cut_for_show(output, OUTPUT_SHOWN_BYTES)
        case Failed(error=error):
            check_move(RunStatus.RUNNING, RunStatus.FAILED)
            row |= {"status": RunStatus.FAILED, "error": _error(error)}
        case DeadLettered(error=error):
            check_move(RunStatus.RUNNING, RunStatus.FAILED)
            check_move(RunStatus.FAILED, RunStatus.DEAD_LETTER)
            row |= {"status": RunStatus.DEAD_LETTER, "error": _error(error)}
    return row


def _error(error: RunError) -> Mapping[str, Any]:
    return {"code": error.code, "message": error.message, "position": error.position}


RETRY_RUNS: Final = sql(
    """
    UPDATE automation_runs SET status = 'PENDING', error = x.error, retry_count = retry_count + 1,
        failures = x.failures, next_attempt_at = x.next_attempt_at, enqueued_at = :now, lease_until = NULL
    FROM {rows}
    WHERE automation_runs.id = x.id AND automation_runs.lease = x.lease
        AND (automation_runs.status || '') = 'RUNNING'
    RETURNING automation_runs.id AS id
    """,
    id="text",
    lease="bigint",
    error="jsonb",
    failures="integer",
    next_attempt_at="timestamptz",
)


def retry_runs(
    where: Connection | Sheet, retries: Sequence[tuple[Claim, Retried]], *, now: datetime
) -> frozenset[str]:
    """Move claimed runs from RUNNING over FAILED to PENDING with one more retry.

    Give those whose claim held.
    """
    check_move(RunStatus.RUNNING, RunStatus.FAILED)
    check_move(RunStatus.FAILED, RunStatus.PENDING)
    return put_ids(
        where,
        RETRY_RUNS,
        (
            {
                "id": claim.run_id,
                "lease": claim.lease,
                "error": _error(retried.error),
                "failures": retried.failures,
                "next_attempt_at": retried.at,
            }
            for claim, retried in retries
        ),
        now=write_instant(now),
    )


RELEASE_RUNS: Final = sql(
    """
    UPDATE automation_runs SET status = 'PENDING', next_attempt_at = x.next_attempt_at, enqueued_at = :now,
        lease_until = NULL
    FROM {rows}
    WHERE automation_runs.id = x.id AND automation_runs.lease = x.lease
        AND (automation_runs.status || '') = 'RUNNING'
    RETURNING automation_runs.id AS id
    """,
    id="text",
    lease="bigint",
    next_attempt_at="timestamptz",
)


def release_runs(
    where: Connection | Sheet, released: Sequence[tuple[Claim, HandedBack]], *, now: datetime
) -> frozenset[str]:
    """Move claimed runs from RUNNING back to PENDING, with no retry counted; give those whose claim held."""
    check_move(RunStatus.RUNNING, RunStatus.PENDING)
    return put_ids(
        where,
        RELEASE_RUNS,
        (
            {"id": claim.run_id, "lease": claim.lease, "next_attempt_at": handed.at}
            for claim, handed in released
        ),
        now=write_instant(now),
    )


RESET_FAILURES: Final = sql(
    """
    UPDATE automation_runs SET failures = 0, crash_count = 0 FROM {rows}
    WHERE automation_runs.id = x.id AND automation_runs.lease = x.lease
        AND (automation_runs.failures > 0 OR automation_runs.crash_count > 0)
    """,
    id="text",
    lease="bigint",
)


def reset_failures(where: Connection | Sheet, claims: Iterable[Claim]) -> None:
    """Start the counts of failures and crashes anew: an action of these runs has just succeeded."""
    put(where, RESET_FAILURES, [{"id": claim.run_id, "lease": claim.lease} for claim in claims])
