"""Subjects as rows: read, locked and written as sets. `shared.model.subjects` decides what a write does.

A row without any touch is a place that was taken so that it can be locked; for readers it is not there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sql import Sql, sql
from shared.db.types import read_json, write_instant
from shared.model.subject_json import row_from_json, row_to_json
from shared.model.subjects import SubjectDelete, SubjectRow, SubjectWrite, data, merge
from shared.time.clock import from_epoch_ms

SubjectKey = tuple[str, str, str]
SubjectChange = SubjectWrite | SubjectDelete
Then = Callable[[int, SubjectRow], SubjectRow]

_EMPTY: Final[Mapping[str, Any]] = {"fields": {}, "touches": []}

FIND_SUBJECTS: Final = sql(
    """
    SELECT r.workspace_id, r.type, r.id, r.writes FROM subjects r
    JOIN {rows} ON r.workspace_id = x.workspace_id AND r.type = x.type AND r.id = x.id
    """,
    workspace_id="text",
    type="text",
    id="text",
)
LOCK_SUBJECTS: Final = sql(
    """
    SELECT r.workspace_id, r.type, r.id, r.writes FROM subjects r
    JOIN {rows} ON r.workspace_id = x.workspace_id AND r.type = x.type AND r.id = x.id
    ORDER BY r.workspace_id, r.type, r.id {lock}
    """,
    workspace_id="text",
    type="text",
    id="text",
)
TAKE_PLACES: Final = sql(
    """
    INSERT INTO subjects (workspace_id, type, id, data, writes, created_at, updated_at)
    SELECT workspace_id, type, id, data, writes, :now, :now FROM {rows}
    WHERE true ORDER BY workspace_id, type, id
    ON CONFLICT (workspace_id, type, id) DO NOTHING
    """,
    workspace_id="text",
    type="text",
    id="text",
    data="jsonb",
    writes="jsonb",
)
SAVE_SUBJECTS: Final = sql(
    """
    INSERT INTO subjects (workspace_id, type, id, data, writes, created_at, updated_at, deleted_at)
    SELECT workspace_id, type, id, data, writes, :now, :now, deleted_at FROM {rows}
    WHERE true ORDER BY workspace_id, type, id
    ON CONFLICT (workspace_id, type, id) DO UPDATE SET data = excluded.data, writes = excluded.writes,
        updated_at = excluded.updated_at, deleted_at = excluded.deleted_at
    """,
    workspace_id="text",
    type="text",
    id="text",
    data="jsonb",
    writes="jsonb",
    deleted_at="timestamptz",
)


def _as_it_is(_at: int, row: SubjectRow) -> SubjectRow:
    return row


def find_subject(conn: Connection, workspace_id: str, type_: str, id_: str) -> SubjectRow | None:
    """Give a subject without locking it; None if nothing was ever told of it."""
    key = (workspace_id, type_, id_)
    return _known(_rows(conn, FIND_SUBJECTS, [key])).get(key)


def find_subjects(conn: Connection, keys: Iterable[SubjectKey]) -> dict[SubjectKey, SubjectRow]:
    """Give those of the subjects that are there, without locking them."""
    return _known(_rows(conn, FIND_SUBJECTS, _ordered(keys)))


def lock_subjects(conn: Connection, keys: Iterable[SubjectKey]) -> dict[SubjectKey, SubjectRow]:
    """Lock those of the subjects that are there, in the order of their keys, until the transaction ends."""
    return _known(_rows(conn, LOCK_SUBJECTS, _ordered(keys)))


def lock_places(
    conn: Connection, keys: Iterable[SubjectKey], *, now: datetime
) -> dict[SubjectKey, SubjectRow]:
    """Lock the subjects, and the places of those that are not there yet, so that nobody else makes them.

    Only subjects that are there come back. What `save_subjects` does not fill stays an empty place.
    """
    ordered = _ordered(keys)
    locked = _rows(conn, LOCK_SUBJECTS, ordered)
    missing = [key for key in ordered if key not in locked]
    if missing:
        TAKE_PLACES.run_set(
            conn, ({**_named(key), "data": {}, "writes": _EMPTY} for key in missing), now=write_instant(now)
        )
        locked |= _rows(conn, LOCK_SUBJECTS, missing)
    return _known(locked)


def save_subjects(conn: Connection, rows: Iterable[SubjectRow], *, now: datetime) -> None:
    """Write subjects over their rows, which the caller holds locked."""
    values = [_values(row) for row in rows]
    if values:
        SAVE_SUBJECTS.run_set(conn, values, now=write_instant(now))


def project_changes(
    conn: Connection, changes: Sequence[SubjectChange], *, now: datetime, then: Then = _as_it_is
) -> int:
    """Lay changes into their subjects as one set; give how many subjects differ. A repeat changes nothing.

    `then` is told of each row right after each change, by the change's place, and may add to the row.
    """
    if not changes:
        return 0
    rows = lock_places(conn, {_key(change) for change in changes}, now=now)
    before = dict(rows)
    for at, change in enumerate(changes):
        rows[_key(change)] = then(at, merge(rows.get(_key(change)), change))
    changed = [rows[key] for key in sorted(rows) if rows[key] is not before.get(key)]
    save_subjects(conn, changed, now=now)
    return len(changed)


def _rows(conn: Connection, statement: Sql, keys: Iterable[SubjectKey]) -> dict[SubjectKey, SubjectRow]:
    found = statement.run_set(conn, map(_named, keys))
    return {
        (row.workspace_id, row.type, row.id): row_from_json(
            {"workspaceId": row.workspace_id, "type": row.type, "id": row.id, **read_json(row.writes)}
        )
        for row in found
    }


def _known(rows: dict[SubjectKey, SubjectRow]) -> dict[SubjectKey, SubjectRow]:
    return {key: row for key, row in rows.items() if row.touches}


def _ordered(keys: Iterable[SubjectKey]) -> list[SubjectKey]:
    return sorted(set(keys))


def _key(change: SubjectChange) -> SubjectKey:
    return (change.workspace_id, change.type, change.id)


def _named(key: SubjectKey) -> dict[str, Any]:
    return dict(zip(("workspace_id", "type", "id"), key, strict=True))


def _values(row: SubjectRow) -> dict[str, Any]:
    written = row_to_json(row)
    return {
        **_named((row.workspace_id, row.type, row.id)),
        "data": data(row),
        "writes": {"fields": written["fields"], "touches": written["touches"]},
        "deleted_at": None if row.deleted is None else write_instant(from_epoch_ms(row.deleted[0])),
    }
