"""When automations with the trigger SCHEDULE fire next: one row each, the only truth about it.

`next_fire_at` is a slot of `cron` in `timezone`, or one that was due when they were edited; NULL where none
could be computed. `updated_at` is since when cron and zone are as they are. Each row is the rows of a sweep's
compare-and-set; nobody waits for a row that another sweep holds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, write_instant

_COLUMNS: Final = """
    r.automation_id, r.workspace_id, r.cron, r.timezone, r.next_fire_at, r.last_slot, r.updated_at
"""
_IS_SCHEDULED: Final = (
    "a.status = 'ACTIVE' AND a.deleted_at IS NULL"
    " AND COALESCE(a.definition -> 'trigger' ->> 'type', '') = 'SCHEDULE'"
)
_ZONE: Final = "COALESCE(a.definition -> 'trigger' -> 'config' ->> 'timezone', 'UTC')"
_CRON: Final = "a.definition -> 'trigger' -> 'config' ->> 'cron'"


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule as it is stored. `last_slot` is the newest slot that a run was made for."""

    automation_id: str
    workspace_id: str
    cron: str
    timezone: str
    next_fire_at: datetime | None
    last_slot: datetime | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the order of due rows a sweep has come to."""

    at: datetime
    automation_id: str


BEGINNING: Final = Position(datetime.fromtimestamp(0, UTC), "")


def _row(row: Row[Any]) -> ScheduleRow:
    return ScheduleRow(
        automation_id=row.automation_id,
        workspace_id=row.workspace_id,
        cron=row.cron,
        timezone=row.timezone,
        next_fire_at=read_instant(row.next_fire_at),
        last_slot=read_instant(row.last_slot),
        updated_at=must_instant(row.updated_at),
    )


DUE: Final = sql(
    f"""
    SELECT {_COLUMNS} FROM schedules r JOIN automations a ON a.id = r.automation_id
    WHERE r.next_fire_at <= :now AND a.status = 'ACTIVE' AND a.deleted_at IS NULL
        AND (r.next_fire_at > :after OR (r.next_fire_at = :after AND r.automation_id > :after_id))
    ORDER BY r.next_fire_at, r.automation_id LIMIT :most
    """
)


def due_schedules(conn: Connection, after: Position, *, now: datetime, most: int) -> list[ScheduleRow]:
    """Give schedules of ACTIVE automations that are due, longest first, beyond a position."""
    values = {
        "now": write_instant(now),
        "after": write_instant(after.at),
        "after_id": after.automation_id,
        "most": most,
    }
    return [_row(row) for row in DUE.run(conn, values)]


LOCK_DUE: Final = sql(
    """
    SELECT r.automation_id, a.version FROM schedules r
    JOIN {rows} ON r.automation_id = x.automation_id JOIN automations a ON a.id = r.automation_id
    WHERE r.next_fire_at = x.next_fire_at AND r.cron = x.cron AND r.timezone = x.timezone
        AND r.updated_at = x.updated_at AND a.status = 'ACTIVE' AND a.deleted_at IS NULL
    ORDER BY r.automation_id {skip_locked}
    """,
    automation_id="text",
    next_fire_at="timestamptz",
    cron="text",
    timezone="text",
    updated_at="timestamptz",
)


def lock_due(conn: Connection, rows: Iterable[ScheduleRow]) -> dict[str, int]:
    """Lock those schedules that are still as they were read; give their automations' versions by id.

    The others were edited, or another sweep has them.
    """
    read = [
        {
            "automation_id": row.automation_id,
            "next_fire_at": row.next_fire_at,
            "cron": row.cron,
            "timezone": row.timezone,
            "updated_at": row.updated_at,
        }
        for row in rows
    ]
    return {row.automation_id: row.version for row in LOCK_DUE.run_set(conn, read)}


ADVANCE: Final = sql(
    """
    UPDATE schedules SET next_fire_at = x.next_fire_at, last_slot = COALESCE(x.last_slot, schedules.last_slot)
    FROM {rows} WHERE schedules.automation_id = x.automation_id
    """,
    automation_id="text",
    next_fire_at="timestamptz",
    last_slot="timestamptz",
)


@dataclass(frozen=True, slots=True)
class Advance:
    """Where a schedule goes on: at `next_fire_at`, after the slot that fired, if one did."""

    automation_id: str
    next_fire_at: datetime | None
    last_slot: datetime | None


def advance_schedules(conn: Connection, advances: Iterable[Advance]) -> None:
    """Move schedules on, which this transaction holds locked."""
    rows = [
        {"automation_id": each.automation_id, "next_fire_at": each.next_fire_at, "last_slot": each.last_slot}
        for each in advances
    ]
    if rows:
        ADVANCE.run_set(conn, rows)


FIND: Final = sql(f"SELECT {_COLUMNS} FROM schedules r JOIN {{rows}} ON r.automation_id = x.id", id="text")
LOCK: Final = sql(
    f"SELECT {_COLUMNS} FROM schedules r JOIN {{rows}} ON r.automation_id = x.id"
    " ORDER BY r.automation_id {lock}",
    id="text",
)


def find_schedules(conn: Connection, automation_ids: Iterable[str]) -> dict[str, ScheduleRow]:
    """Give schedules by their automations' ids; those without one are left out."""
    rows = FIND.run_set(conn, ({"id": found} for found in automation_ids))
    return {row.automation_id: _row(row) for row in rows}


def lock_schedules(conn: Connection, automation_ids: Iterable[str]) -> dict[str, ScheduleRow]:
    """Give schedules as `find_schedules` does, locked until the transaction ends. It waits for a sweep."""
    rows = LOCK.run_set(conn, ({"id": found} for found in automation_ids))
    return {row.automation_id: _row(row) for row in rows}


PUT: Final = sql(
    """
    INSERT INTO schedules (automation_id, workspace_id, cron, timezone, next_fire_at, last_slot, updated_at)
    SELECT automation_id, workspace_id, cron, timezone, next_fire_at, last_slot, updated_at
    FROM {rows} WHERE true
    ON CONFLICT (automation_id) DO UPDATE SET cron = excluded.cron, timezone = excluded.timezone,
        next_fire_at = excluded.next_fire_at, updated_at = excluded.updated_at
    """,
    automation_id="text",
    workspace_id="text",
    cron="text",
    timezone="text",
    next_fire_at="timestamptz",
    last_slot="timestamptz",
    updated_at="timestamptz",
)


def put_schedules(conn: Connection, rows: Iterable[ScheduleRow]) -> None:
    """Write schedules whose automations the caller holds locked; `last_slot` of one that is there stays."""
    values = [_values(row) for row in rows]
    if values:
        PUT.run_set(conn, values)


def _values(row: ScheduleRow) -> Mapping[str, Any]:
    return {
        "automation_id": row.automation_id,
        "workspace_id": row.workspace_id,
        "cron": row.cron,
        "timezone": row.timezone,
        "next_fire_at": row.next_fire_at,
        "last_slot": row.last_slot,
        "updated_at": row.updated_at,
    }


DROP: Final = sql("DELETE FROM schedules WHERE automation_id IN (SELECT x.id FROM {rows})", id="text")


def drop_schedules(conn: Connection, automation_ids: Iterable[str]) -> None:
    """Remove schedules: nothing fires any more. A second call finds none."""
    rows = [{"id": found} for found in automation_ids]
    if rows:
        DROP.run_set(conn, rows)


DIFFERING: Final = sql(
    f"""
    SELECT a.id AS id FROM automations a LEFT JOIN schedules s ON s.automation_id = a.id
    WHERE {_IS_SCHEDULED}
        AND (s.automation_id IS NULL OR s.next_fire_at IS NULL OR s.cron <> {_CRON} OR s.timezone <> {_ZONE})
    UNION
    SELECT s.automation_id FROM schedules s LEFT JOIN automations a ON a.id = s.automation_id
    WHERE a.id IS NULL OR NOT ({_IS_SCHEDULED})
    ORDER BY id
    """
)


def differing_automations(conn: Connection) -> list[str]:
    """Give the ids whose schedule is missing, other than what the automation says, or one too many."""
    return [row.id for row in DIFFERING.run(conn)]


STANDING: Final = sql(
    f"""
    SELECT a.id, a.workspace_id, a.key FROM automations a LEFT JOIN schedules s ON s.automation_id = a.id
    WHERE {_IS_SCHEDULED} AND (s.next_fire_at IS NULL OR s.next_fire_at < :before)
    ORDER BY a.workspace_id, a.key LIMIT :most
    """
)


@dataclass(frozen=True, slots=True)
class Standing:
    """An ACTIVE automation with the trigger SCHEDULE that will not fire by itself."""

    automation_id: str
    workspace_id: str
    key: str


def standing_schedules(conn: Connection, *, before: datetime, most: int) -> list[Standing]:
    """Give the ACTIVE automations whose next slot is unknown, or was due before `before` and did not fire."""
    rows = STANDING.run(conn, {"before": write_instant(before), "most": most})
    return [Standing(row.id, row.workspace_id, row.key) for row in rows]
