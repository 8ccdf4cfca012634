"""The tables of what happens later."""

from typing import Final

from sqlalchemy import Column, Index, String, Table, Text

from shared.db.tables import METADATA
from shared.db.types import UtcDateTime

SCHEDULES: Final = Table(
    "schedules",
    METADATA,
    Column("automation_id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("cron", Text, nullable=False),
    Column("timezone", String(100), nullable=False),
    Column("next_fire_at", UtcDateTime),
    Column("last_slot", UtcDateTime),
    Column("updated_at", UtcDateTime, nullable=False),
    Index("ix_schedules_due", "next_fire_at"),
)
