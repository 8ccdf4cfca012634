"""What is only ever added: checkpoints, attempts, log lines, audit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sheet import Sheet, put
from shared.db.sql import sql
from shared.db.types import must_instant, read_json
from shared.ids import new_id
from shared.masking import mask_definition, mask_tree
from shared.model.runs import ActionDone, Claim, LogLine, RunError

INSERT_ACTIONS: Final = sql(
    """
    INSERT INTO run_actions (run_id, position, type, lease, output, started_at, ended_at)
    SELECT run_id, position, type, lease, output, started_at, ended_at FROM {rows} WHERE true
    ON CONFLICT (run_id, position) DO NOTHING
    """,
    run_id="text",
    position="integer",
    type="text",
    lease="bigint",
    output="jsonb",
    started_at="timestamptz",
    ended_at="timestamptz",
)


def insert_actions(where: Connection | Sheet, done: Iterable[tuple[Claim, ActionDone]]) -> None:
    """Write checkpoints; one that exists stays as it is."""
    rows = [
        {
            "run_id": claim.run_id,
            "position": action.position,
            "type": action.type,
            "lease": claim.lease,
            "output": action.output,
            "started_at": action.started_at,
            "ended_at": action.ended_at,
        }
        for claim, action in done
    ]
    put(where, INSERT_ACTIONS, rows)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a run: under which lease, by whom, and how it came out (`succeeded`, `failed`, ...)."""

    claim: Claim
    outcome: str
    error: RunError | None
    owner: str
    started_at: datetime | None
    ended_at: datetime


INSERT_ATTEMPTS: Final = sql(
    """
    INSERT INTO run_attempts (run_id, lease, outcome, code, message, position, owner, started_at, ended_at)
    SELECT run_id, lease, outcome, code, message, position, owner, started_at, ended_at FROM {rows} WHERE true
    ON CONFLICT (run_id, lease) DO NOTHING
    """,
    run_id="text",
    lease="bigint",
    outcome="text",
    code="text",
    message="text",
    position="integer",
    owner="text",
    started_at="timestamptz",
    ended_at="timestamptz",
)


def insert_attempts(where: Connection | Sheet, attempts: Iterable[Attempt]) -> None:
    """Write attempts; one that exists stays as it is."""
    rows = [
        {
            "run_id": attempt.claim.run_id,
            "lease": attempt.claim.lease,
            "outcome": attempt.outcome,
            "code": attempt.error.code if attempt.error else None,
            "message": attempt.error.message if attempt.error else None,
            "position": attempt.error.position if attempt.error else None,
            "owner": attempt.owner,
            "started_at": attempt.started_at,
            "ended_at": attempt.ended_at,
        }
        for attempt in attempts
    ]
    put(where, INSERT_ATTEMPTS, rows)


# An attempt that crashed was written by whoever took the run over, never by the process that asks.
RECORDED_ATTEMPTS: Final = sql(
    """
    SELECT d.run_id, d.lease FROM run_attempts d JOIN {rows} ON d.run_id = x.run_id AND d.lease = x.lease
    WHERE d.outcome <> 'crashed'
    """,
    run_id="text",
    lease="bigint",
)

RECORDED_ACTIONS: Final = sql(
    """
    SELECT d.run_id, d.position, d.output FROM run_actions d
    JOIN {rows} ON d.run_id = x.run_id AND d.lease = x.lease
    """,
    run_id="text",
    lease="bigint",
)

RECORDED_LINES: Final = sql(
    """
    SELECT d.run_id, d.message, d.at FROM automation_logs d
    JOIN {rows} ON d.run_id = x.run_id AND d.message = x.message AND d.at = x.at
    """,
    run_id="text",
    message="text",
    at="timestamptz",
)

WrittenLine = tuple[str, str, datetime]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is on record: attempts, checkpoints' outputs by (run, position), lines by (run, message, time)."""

    attempts: frozenset[Claim]
    actions: Mapping[tuple[str, int], Mapping[str, Any]]
    lines: frozenset[WrittenLine]


def recorded(conn: Connection, claims: Iterable[Claim], lines: Iterable[WrittenLine]) -> Recorded:
    """Tell what of these claims and lines is on record after a COMMIT whose answer was lost."""
    rows = [{"run_id": claim.run_id, "lease": claim.lease} for claim in claims]
    wanted = [{"run_id": run_id, "message": message, "at": at} for run_id, message, at in lines]
    return Recorded(
        attempts=frozenset(Claim(row.run_id, row.lease) for row in RECORDED_ATTEMPTS.run_set(conn, rows)),
        actions={
            (row.run_id, row.position): read_json(row.output) for row in RECORDED_ACTIONS.run_set(conn, rows)
        },
        lines=frozenset(
            (row.run_id, row.message, must_instant(row.at)) for row in RECORDED_LINES.run_set(conn, wanted)
        ),
    )


INSERT_LOGS: Final = sql(
    """
    INSERT INTO automation_logs (xid, workspace_id, automation_id, run_id, level, message, data, at)
    SELECT {xid}, workspace_id, automation_id, run_id, level, message, data, at FROM {rows}
    """,
    workspace_id="text",
    automation_id="text",
    run_id="text",
    level="text",
    message="text",
    data="jsonb",
    at="timestamptz",
)


@dataclass(frozen=True, slots=True)
class RunLog:
    """A log line and the run that it belongs to."""

    workspace_id: str
    automation_id: str | None
    run_id: str | None
    line: LogLine


def insert_logs(where: Connection | Sheet, logs: Iterable[RunLog]) -> None:
    """Write log lines in the order given, their data masked. A second call writes them a second time."""
    rows = [
        {
            "workspace_id": log.workspace_id,
            "automation_id": log.automation_id,
            "run_id": log.run_id,
            "level": log.line.level,
            "message": log.line.message,
            "data": mask_tree(log.line.data),
            "at": log.line.at,
        }
        for log in logs
    ]
    put(where, INSERT_LOGS, rows)


INSERT_AUDIT: Final = sql(
    """
    INSERT INTO audit (id, workspace_id, actor, action, resource_type, resource_id, detail, at)
    SELECT id, workspace_id, actor, action, resource_type, resource_id, detail, :at FROM {rows}
    """,
    id="text",
    workspace_id="text",
    actor="text",
    action="text",
    resource_type="text",
    resource_id="text",
    detail="jsonb",
)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who did what to which thing."""

    workspace_id: str
    actor: str
    action: str
    resource_type: str
    resource_id: str
    detail: Mapping[str, Any]


def insert_audit(conn: Connection, entries: Iterable[AuditEntry], *, now: datetime) -> None:
    """Write audit entries, masked as definitions are, in the transaction of what they tell of."""
    rows = [
        {
            "id": new_id(),
            "workspace_id": entry.workspace_id,
            "actor": entry.actor,
            "action": entry.action,
            "resource_type": entry.resource_type,
            "resource_id": entry.resource_id,
            "detail": mask_definition(entry.detail),
        }
        for entry in entries
    ]
    if rows:
        INSERT_AUDIT.run_set(conn, rows, at=now.isoformat())
