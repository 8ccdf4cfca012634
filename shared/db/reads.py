"""What people look at: runs as lists show them, one run with its whole history."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.pending_reads import PendingSummary, find_pending_of_run
from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, read_json
from shared.model.moves import RunStatus
from shared.model.runs import RunSource

RUN_COLUMNS: Final = """
    r.id, r.workspace_id, r.automation_id, a.key AS automation_key,
    COALESCE(a.name, r.title) AS automation_name,
    a.deleted_at AS automation_deleted_at, r.trigger_type, r.source,
    r.status, r.skip_reason, r.error, r.retry_count, r.depth, r.root_run_id, r.entry_id, r.stop_reason,
    r.created_at, r.started_at, r.ended_at, r.next_attempt_at
"""
RUN_TABLES: Final = "automation_runs r LEFT JOIN automations a ON a.id = r.automation_id"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run as lists show it. `error` is that of the last attempt that failed.

    One without an automation has its own title for a name.
    """

    id: str
    workspace_id: str
    automation_id: str | None
    automation_key: str | None
    automation_name: str | None
    automation_deleted_at: datetime | None
    trigger_type: str
    source: RunSource
    status: RunStatus
    skip_reason: str | None
    error: Mapping[str, Any] | None
    retry_count: int
    depth: int
    root_run_id: str
    entry_id: str | None
    stop_reason: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    next_attempt_at: datetime | None

    @property
    def known_by(self) -> str:
        """Give what a line of a list calls it: its automation's key, else its own name."""
        return self.automation_key or self.automation_name or self.trigger_type

    @property
    def why(self) -> str:
        """Say in a word or a line why it stands where it stands; nothing where its status says it all."""
        if self.skip_reason:
            return f"skipped: {self.skip_reason}"
        if self.status is RunStatus.CANCELLED:
            return self.stop_reason or ""
        if self.error is None or self.status is RunStatus.SUCCEEDED:
            return ""
        position = self.error.get("position")
        where = f" at action {position}" if position else ""
        return f"{self.error['code']}{where}"


def run_summary(row: Row[Any]) -> RunSummary:
    """Read a row of `RUN_COLUMNS`."""
    return RunSummary(
        id=row.id,
        workspace_id=row.workspace_id,
        automation_id=row.automation_id,
        automation_key=row.automation_key,
        automation_name=row.automation_name,
        automation_deleted_at=read_instant(row.automation_deleted_at),
        trigger_type=row.trigger_type,
        source=RunSource(row.source),
        status=RunStatus(row.status),
        skip_reason=row.skip_reason,
        error=read_json(row.error),
        retry_count=row.retry_count,
        depth=row.depth,
        root_run_id=row.root_run_id,
        entry_id=row.entry_id,
        stop_reason=row.stop_reason,
        created_at=must_instant(row.created_at),
        started_at=read_instant(row.started_at),
        ended_at=read_instant(row.ended_at),
        next_attempt_at=read_instant(row.next_attempt_at),
    )


FIND_RUN_ROWS: Final = sql(
    f"SELECT {RUN_COLUMNS} FROM {RUN_TABLES} JOIN {{rows}} ON r.id = x.id"
    " WHERE r.workspace_id = :workspace_id",
    id="text",
)


def find_run_rows(conn: Connection, workspace_id: str, run_ids: Iterable[str]) -> dict[str, RunSummary]:
    """Give a workspace's runs by id; those of others are not there."""
    rows = FIND_RUN_ROWS.run_set(conn, ({"id": run_id} for run_id in run_ids), workspace_id=workspace_id)
    return {row.id: run_summary(row) for row in rows}


WORKSPACE_IDS: Final = sql("SELECT r.id FROM workspaces r ORDER BY r.created_at LIMIT :most")


def workspace_ids(conn: Connection, *, most: int) -> list[str]:
    """Name the oldest workspaces."""
    return list(WORKSPACE_IDS.run(conn, {"most": most}).scalars())


@dataclass(frozen=True, slots=True)
class ActionRow:
    """An action that succeeded."""

    position: int
    type: str
    output: Mapping[str, Any]
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt and how it came out."""

    lease: int
    outcome: str
    code: str | None
    message: str | None
    position: int | None
    owner: str | None
    started_at: datetime | None
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class RunDetail:
    """Everything that is on record about a run, its log aside; `pending` is what waited for it."""

    run: RunSummary
    source: RunSource
    input: Mapping[str, Any]
    output: Mapping[str, Any] | None
    actions: tuple[ActionRow, ...]
    attempts: tuple[AttemptRow, ...]
    pending: PendingSummary | None


READ_DOCUMENTS: Final = sql("SELECT r.source, r.input, r.output FROM automation_runs r WHERE r.id = :id")
READ_ACTIONS: Final = sql(
    """
    SELECT r.position, r.type, r.output, r.started_at, r.ended_at FROM run_actions r
    WHERE r.run_id = :id ORDER BY r.position
    """
)
READ_ATTEMPTS: Final = sql(
    """
    SELECT r.lease, r.outcome, r.code, r.message, r.position, r.owner, r.started_at, r.ended_at
    FROM run_attempts r WHERE r.run_id = :id ORDER BY r.lease
    """
)


def read_run(conn: Connection, workspace_id: str, run_id: str) -> RunDetail | None:
    """Give one run of a workspace with its documents, finished actions and attempts, or None."""
    found = find_run_rows(conn, workspace_id, [run_id]).get(run_id)
    if found is None:
        return None
    which = {"id": run_id}
    documents = READ_DOCUMENTS.run(conn, which).one()
    return RunDetail(
        run=found,
        source=RunSource(documents.source),
        input=read_json(documents.input),
        output=read_json(documents.output),
        actions=tuple(_action(row) for row in READ_ACTIONS.run(conn, which)),
        attempts=tuple(_attempt(row) for row in READ_ATTEMPTS.run(conn, which)),
        pending=find_pending_of_run(conn, workspace_id, run_id)
        if documents.source == RunSource.DELAYED
        else None,
    )


def _action(row: Row[Any]) -> ActionRow:
    return ActionRow(
        position=row.position,
        type=row.type,
        output=read_json(row.output),
        started_at=must_instant(row.started_at),
        ended_at=must_instant(row.ended_at),
    )


def _attempt(row: Row[Any]) -> AttemptRow:
    return AttemptRow(
        lease=row.lease,
        outcome=row.outcome,
        code=row.code,
        message=row.message,
        position=row.position,
        owner=row.owner,
        started_at=read_instant(row.started_at),
        ended_at=must_instant(row.ended_at),
    )
