"""Subjects of a type by their last change, the newest first: a walk down one index, in batches."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.sql import sql
from shared.db.subjects import SubjectKey
from shared.db.types import must_instant, write_instant


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the walk: behind the subject that was changed then and has this id."""

    updated_at: datetime
    id: str


_LAST: Final = "9999-12-31T23:59:59+00:00"

NEWEST: Final = sql(
    """
    SELECT r.id, r.updated_at FROM subjects r
    WHERE (r.workspace_id, r.type, r.updated_at, r.id) < ((SELECT :workspace_id), :type, :at, :id)
        AND (r.workspace_id, r.type) >= ((SELECT :workspace_id), :type)
    ORDER BY r.workspace_id DESC, r.type DESC, r.updated_at DESC, r.id DESC LIMIT :most
    """
)


def newest_subjects(
    conn: Connection, workspace_id: str, type_: str, before: Mark | None, *, most: int
) -> tuple[list[SubjectKey], Mark | None]:
    """Give the next subjects, deleted ones too, and the place to go on from; None at the end."""
    place = {"at": _LAST, "id": ""} if before is None else _values(before)
    values = {"workspace_id": workspace_id, "type": type_, "most": most, **place}
    rows = NEWEST.run(conn, values).all()
    after = Mark(must_instant(rows[-1].updated_at), rows[-1].id) if len(rows) == most else None
    return [(workspace_id, type_, row.id) for row in rows], after


def _values(mark: Mark) -> dict[str, str]:
    return {"at": write_instant(mark.updated_at), "id": mark.id}
