"""The table of what is done to many runs at once."""

from typing import Final

from sqlalchemy import Column, Index, Integer, String, Table, Text, text

from shared.db.tables import METADATA
from shared.db.types import JsonColumn, UtcDateTime

_GOING: Final = text("status IN ('CONFIRMED', 'RUNNING')")

# `skipped` counts by reason. Runs up to `after_id` have had their turn, those after `until_id` get none.
BULK_OPERATIONS: Final = Table(
    "bulk_operations",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("filter", JsonColumn, nullable=False),
    Column("start", String(20)),
    Column("status", String(20), nullable=False),
    Column("total", Integer, nullable=False),
    Column("more", Integer, nullable=False),
    Column("done", Integer, nullable=False),
    Column("skipped", JsonColumn, nullable=False),
    Column("after_id", String(36), nullable=False),
    Column("until_id", String(36), nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("confirmed_by", Text),
    Column("confirmed_at", UtcDateTime),
    Column("moved_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Index("ix_bulk_operations_workspace", "workspace_id", "id"),
    Index("ix_bulk_operations_going", "moved_at", postgresql_where=_GOING, sqlite_where=_GOING),
)
