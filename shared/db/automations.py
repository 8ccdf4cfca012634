"""Automations as rows: the current definition, every version that was saved, and when each came alive."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, read_json, write_instant
from shared.model.statuses import AutomationStatus

COLUMNS: Final = """
    r.id, r.workspace_id, r.key, r.name, r.status, r.version, r.definition, r.activated_ms, r.created_at,
    r.updated_at, r.deleted_at
"""


@dataclass(frozen=True, slots=True)
class AutomationRow:
    """An automation as it is stored; `definition` is the JSON that `parse_definition` reads."""

    id: str
    workspace_id: str
    key: str
    name: str
    status: AutomationStatus
    version: int
    definition: Mapping[str, Any]
    activated_ms: int | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


def _row(row: Row[Any]) -> AutomationRow:
    return AutomationRow(
        id=row.id,
        workspace_id=row.workspace_id,
        key=row.key,
        name=row.name,
        status=AutomationStatus(row.status),
        version=row.version,
        definition=read_json(row.definition),
        activated_ms=row.activated_ms,
        created_at=must_instant(row.created_at),
        updated_at=must_instant(row.updated_at),
        deleted_at=read_instant(row.deleted_at),
    )


FIND_BY_KEY: Final = sql(
    f"SELECT {COLUMNS} FROM automations r WHERE r.workspace_id = :workspace_id AND r.key = :key"
    " AND r.deleted_at IS NULL {lock}"
)


def lock_by_key(conn: Connection, workspace_id: str, key: str) -> AutomationRow | None:
    """Lock and give the living automation with this key, or None."""
    row = FIND_BY_KEY.run(conn, {"workspace_id": workspace_id, "key": key}).first()
    return _row(row) if row else None


FIND_BY_REFERENCE: Final = sql(
    f"SELECT {COLUMNS} FROM automations r WHERE r.workspace_id = :workspace_id AND r.deleted_at IS NULL"
    " AND (r.key = :reference OR r.id = :reference) ORDER BY CASE WHEN r.key = :reference THEN 0 ELSE 1 END"
)


def find_by_reference(conn: Connection, workspace_id: str, reference: str) -> AutomationRow | None:
    """Give the living automation with this key, else with this id, or None."""
    row = FIND_BY_REFERENCE.run(conn, {"workspace_id": workspace_id, "reference": reference}).first()
    return _row(row) if row else None


FIND_EVER: Final = sql(
    f"SELECT {COLUMNS} FROM automations r WHERE r.workspace_id = :workspace_id"
    " AND (r.key = :reference OR r.id = :reference)"
    " ORDER BY CASE WHEN r.deleted_at IS NULL THEN 0 ELSE 1 END,"
    " CASE WHEN r.key = :reference THEN 0 ELSE 1 END, r.deleted_at DESC, r.id DESC LIMIT 1"
)


def find_ever_by_reference(conn: Connection, workspace_id: str, reference: str) -> AutomationRow | None:
    """Give the automation that `find_by_reference` gives, else the one that was deleted last, or None."""
    row = FIND_EVER.run(conn, {"workspace_id": workspace_id, "reference": reference}).first()
    return _row(row) if row else None


LIST: Final = sql(
    f"SELECT {COLUMNS} FROM automations r WHERE r.workspace_id = :workspace_id AND r.deleted_at IS NULL"
    " ORDER BY r.key"
)


def list_automations(conn: Connection, workspace_id: str) -> list[AutomationRow]:
    """Give a workspace's living automations by key."""
    return [_row(row) for row in LIST.run(conn, {"workspace_id": workspace_id})]


LIST_AFTER: Final = sql(
    f"SELECT {COLUMNS} FROM automations r WHERE r.workspace_id = :workspace_id AND r.deleted_at IS NULL"
    " AND r.key > :after ORDER BY r.key LIMIT :most"
)


def automations_after(conn: Connection, workspace_id: str, after: str, *, most: int) -> list[AutomationRow]:
    """Give a workspace's living automations by key, from the first one behind `after` on."""
    rows = LIST_AFTER.run(conn, {"workspace_id": workspace_id, "after": after, "most": most})
    return [_row(row) for row in rows]


@dataclass(frozen=True, slots=True)
class VersionRow:
    """What an automation's definition was from an instant on."""

    version: int
    definition: Mapping[str, Any]
    created_at: datetime


VERSIONS: Final = sql(
    "SELECT r.version, r.definition, r.created_at FROM automation_versions r"
    " WHERE r.automation_id = :id AND r.version < :before ORDER BY r.version DESC LIMIT :most"
)


def list_versions(conn: Connection, automation_id: str, *, before: int, most: int) -> list[VersionRow]:
    """Give the versions of an automation that are older than `before`, newest first."""
    rows = VERSIONS.run(conn, {"id": automation_id, "before": before, "most": most})
    return [VersionRow(row.version, read_json(row.definition), must_instant(row.created_at)) for row in rows]


FIND_BY_IDS: Final = sql(f"SELECT {COLUMNS} FROM automations r JOIN {{rows}} ON r.id = x.id", id="text")


def find_automations(conn: Connection, ids: Iterable[str]) -> dict[str, AutomationRow]:
    """Give automations by id, deleted ones too."""
    return {row.id: _row(row) for row in FIND_BY_IDS.run_set(conn, ({"id": found} for found in ids))}


LOCK_BY_IDS: Final = sql(
    f"SELECT {COLUMNS} FROM automations r JOIN {{rows}} ON r.id = x.id ORDER BY r.id {{lock}}", id="text"
)


def lock_automations(conn: Connection, ids: Iterable[str]) -> list[AutomationRow]:
    """Lock and give automations, deleted ones too."""
    return [_row(row) for row in LOCK_BY_IDS.run_set(conn, ({"id": found} for found in ids))]


STATES: Final = sql(
    "SELECT r.id, r.version, r.status, r.deleted_at FROM automations r JOIN {rows} ON r.id = x.id", id="text"
)


@dataclass(frozen=True, slots=True)
class AutomationState:
    """What may have changed since an automation was last read."""

    version: int
    status: AutomationStatus
    is_deleted: bool


def automation_states(conn: Connection, ids: Iterable[str]) -> dict[str, AutomationState]:
    """Give the states of automations by id; a missing id was never there."""
    rows = STATES.run_set(conn, ({"id": found} for found in ids))
    return {
        row.id: AutomationState(row.version, AutomationStatus(row.status), row.deleted_at is not None)
        for row in rows
    }


CHANGED: Final = sql(f"SELECT {COLUMNS} FROM automations r WHERE r.updated_at >= :since")
LISTENING: Final = sql(
    f"SELECT {COLUMNS} FROM automations r WHERE r.status IN ('ACTIVE', 'PAUSED') AND r.deleted_at IS NULL"
)


def listening_automations(conn: Connection) -> list[AutomationRow]:
    """Give every automation that events are held against: ACTIVE ones match, PAUSED ones are counted."""
    return [_row(row) for row in LISTENING.run(conn)]


def changed_automations(conn: Connection, since: datetime) -> list[AutomationRow]:
    """Give every automation written at or after `since`, whatever its state."""
    return [_row(row) for row in CHANGED.run(conn, {"since": write_instant(since)})]


INSERT: Final = sql(
    """
    INSERT INTO automations (id, workspace_id, key, name, status, version, definition, activated_ms,
        created_at, updated_at)
    SELECT id, workspace_id, key, name, status, version, definition, activated_ms, :now, :now FROM {rows}
    """,
    id="text",
    workspace_id="text",
    key="text",
    name="text",
    status="text",
    version="integer",
    definition="jsonb",
    activated_ms="bigint",
)
UPDATE: Final = sql(
    """
    UPDATE automations SET name = x.name, status = x.status, version = x.version, definition = x.definition,
        activated_ms = x.activated_ms, updated_at = :now
    FROM {rows} WHERE automations.id = x.id
    """,
    id="text",
    name="text",
    status="text",
    version="integer",
    definition="jsonb",
    activated_ms="bigint",
)
INSERT_VERSION: Final = sql(
    """
    INSERT INTO automation_versions (automation_id, version, definition, created_at)
    SELECT id, version, definition, :now FROM {rows} WHERE true
    ON CONFLICT (automation_id, version) DO NOTHING
    """,
    id="text",
    version="integer",
    definition="jsonb",
)


def insert_automation(conn: Connection, row: AutomationRow) -> None:
    """Write a new automation and its first version."""
    values = _values(row)
    now = write_instant(row.updated_at)
    INSERT.run_set(conn, [values], now=now)
    INSERT_VERSION.run_set(conn, [values], now=now)


def update_automation(conn: Connection, row: AutomationRow) -> None:
    """Write an automation over its row, which the caller holds locked, and keep a version that is new."""
    values = _values(row)
    now = write_instant(row.updated_at)
    UPDATE.run_set(conn, [values], now=now)
    INSERT_VERSION.run_set(conn, [values], now=now)


def _values(row: AutomationRow) -> Mapping[str, Any]:
    return {
        "id": row.id,
        "workspace_id": row.workspace_id,
        "key": row.key,
        "name": row.name,
        "status": row.status,
        "version": row.version,
        "definition": row.definition,
        "activated_ms": row.activated_ms,
    }


DELETE: Final = sql(
    "UPDATE automations SET deleted_at = :now, updated_at = :now, status = 'ARCHIVED'"
    " WHERE id = :id AND deleted_at IS NULL"
)


def delete_automation(conn: Connection, automation_id: str, *, now: datetime) -> bool:
    """Mark an automation as deleted; report whether it was still there. Its history stays."""
    return DELETE.run(conn, {"id": automation_id, "now": write_instant(now)}).rowcount == 1
