"""Runs come into being: inserted as a set under their unique key, so that a repeat makes no second one."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sheet import put_ids
from shared.db.sql import sql
from shared.model.runs import BULK_ABOVE, ExistingRun, NewRun, QueueKind, RunSource

_COLUMNS: Final = tuple(column.name for column in fields(NewRun))

INSERT_RUNS: Final = sql(
    """
    INSERT INTO automation_runs (
        id, workspace_id, automation_id, automation_version, source, source_id, event_key, event_hash,
        entry_id,
        trigger_type, subject_type, subject_id, status, input, event, depth, root_run_id, retry_count,
        failures,
        crash_count, lease, queue, enqueued_at, created_at, seen, title)
    SELECT id, workspace_id, automation_id, automation_version, source, source_id, event_key, event_hash,
        entry_id,
        trigger_type, subject_type, subject_id, 'PENDING', input, event, depth, root_run_id, 0, 0,
        0, 0, queue, created_at, created_at, seen, title
    FROM {rows} WHERE true ORDER BY source, source_id
    ON CONFLICT (source, source_id) DO NOTHING
    RETURNING id
    """,
    id="text",
    workspace_id="text",
    automation_id="text",
    automation_version="integer",
    source="text",
    source_id="text",
    event_key="text",
    event_hash="text",
    entry_id="text",
    trigger_type="text",
    subject_type="text",
    subject_id="text",
    input="jsonb",
    event="jsonb",
    depth="integer",
    root_run_id="text",
    queue="text",
    created_at="timestamptz",
    seen="text",
    title="text",
)


def insert_runs(conn: Connection, runs: Sequence[NewRun]) -> frozenset[str]:
    """Insert runs as PENDING; give the ids of those that were new. The others have a row already."""
    return put_ids(conn, INSERT_RUNS, map(_shallow, runs))


def _shallow(run: NewRun) -> dict[str, Any]:
    return {name: getattr(run, name) for name in _COLUMNS}


FIND_RUNS: Final = sql(
    """
    SELECT r.id, r.source_id, r.status, r.lease, r.event_hash, r.queue, r.entry_id
    FROM automation_runs r JOIN {rows} ON r.source = x.source AND r.source_id = x.source_id
    """,
    source="text",
    source_id="text",
)


def find_runs(conn: Connection, source: RunSource, source_ids: Iterable[str]) -> list[ExistingRun]:
    """Give the runs that exist under these source ids, in no order."""
    rows = FIND_RUNS.run_set(conn, ({"source": source, "source_id": found} for found in source_ids))
    return [
        ExistingRun(
            row.id, row.source_id, row.status, row.lease, row.event_hash, QueueKind(row.queue), row.entry_id
        )
        for row in rows
    ]


COUNT_WAITING: Final = sql(
    """
    SELECT x.workspace_id, (
        SELECT count(*) FROM (
            SELECT 1 FROM automation_runs r
                WHERE r.workspace_id = x.workspace_id AND r.status = 'PENDING' LIMIT :most
        ) waiting
    ) AS waiting
    FROM {rows}
    """,
    workspace_id="text",
)


def count_waiting(conn: Connection, workspace_ids: Iterable[str]) -> dict[str, int]:
    """Count each workspace's PENDING runs, no further than `queue_for` has to know."""
    wanted = ({"workspace_id": found} for found in workspace_ids)
    rows = COUNT_WAITING.run_set(conn, wanted, most=BULK_ABOVE + 1)
    return {row.workspace_id: row.waiting for row in rows}
