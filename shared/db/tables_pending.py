"""The table of delayed executions."""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text, UniqueConstraint, text

from shared.db.tables import METADATA
from shared.db.types import JsonColumn, UtcDateTime

_WAITS: Final = text("status = 'pending'")
_CLAIMED: Final = text("status = 'processing'")
_OPEN_STATE: Final = text("ended_at IS NULL AND anchor = 'state'")
_OPEN: Final = text("ended_at IS NULL")
_LAPSED: Final = text("ended_at IS NOT NULL AND anchor = 'awaiting_agent'")
_ENDED: Final = text("ended_at IS NOT NULL")

# The index on what waits is by workspace too, so that a sweep can take the oldest of each in turn.
PENDING_EXECUTIONS: Final = Table(
    "pending_executions",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("automation_id", String(36), nullable=False),
    Column("subject_type", String(100), nullable=False),
    Column("subject_id", Text, nullable=False),
    Column("anchor", String(20), nullable=False),
    Column("message_id", Text),
    Column("anchor_ms", BigInteger, nullable=False),
    Column("anchor_seq", BigInteger, nullable=False),
    Column("trigger_event", JsonColumn, nullable=False),
    Column("episode_key", Text, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("status", String(20), nullable=False),
    Column("skip_reason", String(30)),
    Column("run_id", String(36)),
    Column("version", Integer, nullable=False),
    Column("armed_at", UtcDateTime, nullable=False),
    Column("claimed_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint(
        "automation_id", "subject_type", "subject_id", "episode_key", name="uq_pending_executions_episode"
    ),
    Index(
        "uq_pending_executions_state",
        "automation_id",
        "subject_type",
        "subject_id",
        unique=True,
        postgresql_where=_OPEN_STATE,
        sqlite_where=_OPEN_STATE,
    ),
    Index("ix_pending_executions_due", "due_at", "id", postgresql_where=_WAITS, sqlite_where=_WAITS),
    Index(
        "ix_pending_executions_workspace_due",
        "workspace_id",
        "due_at",
        "id",
        postgresql_where=_WAITS,
        sqlite_where=_WAITS,
    ),
    Index("ix_pending_executions_claimed", "claimed_at", postgresql_where=_CLAIMED, sqlite_where=_CLAIMED),
    Index(
        "ix_pending_executions_open",
        "workspace_id",
        "subject_type",
        "subject_id",
        postgresql_where=_OPEN,
        sqlite_where=_OPEN,
    ),
    Index("ix_pending_executions_ended", "ended_at", postgresql_where=_ENDED, sqlite_where=_ENDED),
    Index(
        "ix_pending_executions_lapsed",
        "automation_id",
        "subject_type",
        "subject_id",
        "anchor_ms",
        "anchor_seq",
        postgresql_where=_LAPSED,
        sqlite_where=_LAPSED,
    ),
    Index("ix_pending_executions_workspace", "workspace_id", "id"),
    Index("ix_pending_executions_automation", "automation_id", "id"),
)
