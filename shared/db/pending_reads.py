"""Pending executions as people look at them (docs/delayed.md): one, that of a run, those of a subject."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, read_json
from shared.model.pending import Anchor, PendingSkip, PendingStatus
from shared.model.subjects import SubjectRef

SUMMARY_COLUMNS: Final = """
    r.id, r.workspace_id, r.automation_id, a.key AS automation_key, a.name AS automation_name,
    a.definition ->> 'execution_delay' AS delay_min, r.subject_type, r.subject_id, r.anchor, r.message_id,
    r.episode_key, r.trigger_event ->> 'entryId' AS armed_by, r.started_at, r.due_at, r.status, r.skip_reason,
    r.run_id, r.ended_at, r.created_at, r.updated_at
"""
SUMMARY_TABLES: Final = "pending_executions r LEFT JOIN automations a ON a.id = r.automation_id"


@dataclass(frozen=True, slots=True)
class PendingSummary:
    """A pending execution as lists show it.

    `delay_min` is the automation's delay as it is now, `armed_by` the id of an entry.
    """

    id: str
    workspace_id: str
    automation_id: str
    automation_key: str | None
    automation_name: str | None
    delay_min: int | None
    subject: SubjectRef
    anchor: Anchor
    message_id: str | None
    episode_key: str
    armed_by: str
    started_at: datetime
    due_at: datetime
    status: PendingStatus
    skip_reason: PendingSkip | None
    run_id: str | None
    ended_at: datetime | None
    created_at: datetime
    updated_at: datetime


FIND: Final = sql(
    f"SELECT {SUMMARY_COLUMNS}, r.trigger_event FROM {SUMMARY_TABLES}"
    " WHERE r.workspace_id = :workspace_id AND r.id = :id"
)


@dataclass(frozen=True, slots=True)
class PendingDetail:
    """One pending execution, with the event that armed it, whole."""

    row: PendingSummary
    trigger_event: Mapping[str, Any]


def find_pending(conn: Connection, workspace_id: str, pending_id: str) -> PendingDetail | None:
    """Give one of a workspace's pending executions, or None."""
    row = FIND.run(conn, {"workspace_id": workspace_id, "id": pending_id}).first()
    return None if row is None else PendingDetail(pending_summary(row), read_json(row.trigger_event))


# A second run of one row has more behind the row's id, which is 36 characters long.
FIND_OF_RUN: Final = sql(
    f"SELECT {SUMMARY_COLUMNS} FROM {SUMMARY_TABLES} WHERE r.workspace_id = :workspace_id AND r.id = ("
    "SELECT substr(n.source_id, 1, 36) FROM automation_runs n WHERE n.id = :run_id AND n.source = 'delayed')"
)


def find_pending_of_run(conn: Connection, workspace_id: str, run_id: str) -> PendingSummary | None:
    """Give the pending execution that a run was made for; None if it was made for none."""
    row = FIND_OF_RUN.run(conn, {"workspace_id": workspace_id, "run_id": run_id}).first()
    return None if row is None else pending_summary(row)


FIND_OF_SUBJECT: Final = sql(
    f"SELECT {SUMMARY_COLUMNS} FROM {SUMMARY_TABLES} JOIN {{rows}} ON r.automation_id = x.automation_id"
    " WHERE r.workspace_id = :workspace_id AND r.subject_type = :subject_type AND r.subject_id = :subject_id"
    " ORDER BY r.id",
    automation_id="text",
)


def find_pending_of_subject(
    conn: Connection, workspace_id: str, subject: SubjectRef, automation_ids: Iterable[str]
) -> dict[str, list[PendingSummary]]:
    """Give what these automations keep, and kept, of a subject, by automation, the oldest first."""
    found: dict[str, list[PendingSummary]] = {}
    rows = FIND_OF_SUBJECT.run_set(
        conn,
        ({"automation_id": each} for each in automation_ids),
        workspace_id=workspace_id,
        subject_type=subject.type,
        subject_id=subject.id,
    )
    for row in rows:
        found.setdefault(row.automation_id, []).append(pending_summary(row))
    return found


def pending_summary(row: Row[Any]) -> PendingSummary:
    """Read a row of `SUMMARY_COLUMNS`."""
    return PendingSummary(
        id=row.id,
        workspace_id=row.workspace_id,
        automation_id=row.automation_id,
        automation_key=row.automation_key,
        automation_name=row.automation_name,
        delay_min=None if row.delay_min is None else int(row.delay_min),
        subject=SubjectRef(row.subject_type, row.subject_id),
        anchor=Anchor(row.anchor),
        message_id=row.message_id,
        episode_key=row.episode_key,
        armed_by=row.armed_by,
        started_at=must_instant(row.started_at),
        due_at=must_instant(row.due_at),
        status=PendingStatus(row.status),
        skip_reason=PendingSkip(row.skip_reason) if row.skip_reason else None,
        run_id=row.run_id,
        ended_at=read_instant(row.ended_at),
        created_at=must_instant(row.created_at),
        updated_at=must_instant(row.updated_at),
    )
