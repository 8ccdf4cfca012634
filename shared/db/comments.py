"""Comments about subjects."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.sheet import Sheet, put
from shared.db.sql import sql
from shared.db.types import write_instant


@dataclass(frozen=True, slots=True)
class CommentRow:
    """One comment; `run_id` is the run that wrote it."""

    id: str
    workspace_id: str
    subject_type: str
    subject_id: str
    author: str
    body: str
    run_id: str | None


INSERT_COMMENTS: Final = sql(
    """
    INSERT INTO comments (id, workspace_id, subject_type, subject_id, author, body, run_id, created_at)
    SELECT id, workspace_id, subject_type, subject_id, author, body, run_id, :now FROM {rows}
    """,
    id="text",
    workspace_id="text",
    subject_type="text",
    subject_id="text",
    author="text",
    body="text",
    run_id="text",
)


def insert_comments(where: Connection | Sheet, comments: Iterable[CommentRow], *, now: datetime) -> None:
    """Write comments; their ids are new."""
    put(where, INSERT_COMMENTS, map(asdict, comments), now=write_instant(now))
