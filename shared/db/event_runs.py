"""Which runs events started, looked up by the key that makes them unique."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, read_json
from shared.model.moves import RunStatus
from shared.model.runs import RunSource


@dataclass(frozen=True, slots=True)
class EventRun:
    """A run that an entry started, as far as it takes to say what became of it."""

    id: str
    entry_id: str | None
    event_hash: str | None
    automation_version: int | None
    status: RunStatus
    skip_reason: str | None
    error: Mapping[str, Any] | None
    stop_reason: str | None
    created_at: datetime
    started_at: datetime | None


FIND_EVENT_RUNS: Final = sql(
    """
    SELECT r.id, r.source_id, r.entry_id, r.event_hash, r.automation_version, r.status, r.skip_reason,
        r.error, r.stop_reason, r.created_at, r.started_at
    FROM automation_runs r JOIN {rows} ON r.source = x.source AND r.source_id = x.source_id
    """,
    source="text",
    source_id="text",
)


def find_event_runs(conn: Connection, source_ids: Iterable[str]) -> dict[str, EventRun]:
    """Give the runs of events by their source id; what started none is left out."""
    wanted = ({"source": RunSource.EVENT, "source_id": source_id} for source_id in source_ids)
    return {
        row.source_id: EventRun(
            id=row.id,
            entry_id=row.entry_id,
            event_hash=row.event_hash,
            automation_version=row.automation_version,
            status=RunStatus(row.status),
            skip_reason=row.skip_reason,
            error=read_json(row.error),
            stop_reason=row.stop_reason,
            created_at=must_instant(row.created_at),
            started_at=read_instant(row.started_at),
        )
        for row in FIND_EVENT_RUNS.run_set(conn, wanted)
    }
