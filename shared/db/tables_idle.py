"""The tables of idle sequences: AI agents and channels with their rules, and what is to fire when."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from shared.db.tables import METADATA
from shared.db.types import JsonColumn, UtcDateTime

_WAITS: Final = text("status = 'pending'")
_CLAIMED: Final = text("status = 'processing' AND run_id IS NULL")
_OPEN: Final = text("status IN ('pending', 'processing')")
_ENDED: Final = text("ended_at IS NOT NULL")

# `parameters` holds `profile`, and in it `idle_rule`; what is deleted stays, so that its id is never reused.
AI_AGENTS: Final = Table(
    "ai_agents",
    METADATA,
    Column("workspace_id", String(100), nullable=False),
    Column("id", String(100), nullable=False),
    Column("name", Text, nullable=False),
    Column("parameters", JsonColumn, nullable=False),
    Column("deleted_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("workspace_id", "id"),
)

# A conversation's `inboxId` names its channel. `settings` holds `idle_rule`.
CHANNELS: Final = Table(
    "channels",
    METADATA,
    Column("workspace_id", String(100), nullable=False),
    Column("id", String(100), nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("enabled", Integer, nullable=False),
    Column("settings", JsonColumn, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("workspace_id", "id"),
)

# What is on for the whole installation; a workspace's own flag must say so, too.
FEATURE_FLAGS: Final = Table(
    "feature_flags",
    METADATA,
    Column("name", String(100), primary_key=True),
    Column("enabled", Integer, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

# One row a step of a sequence; `sequence_id` is the id of its first. `anchor_*` is the message that its clock
# runs from. `rule` says whose: an AI agent's, or a channel's. Two indexes begin with the conversation, so
# that no planner takes them for the way to what waits of a workspace.
IDLE_STEPS: Final = Table(
    "idle_steps",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("conversation_id", Text, nullable=False),
    Column("sequence_id", String(36), nullable=False),
    Column("rule", String(10), nullable=False),
    Column("agent_id", String(100)),
    Column("channel_id", String(100)),
    Column("step_index", Integer, nullable=False),
    Column("step_count", Integer, nullable=False),
    Column("action", String(20), nullable=False),
    Column("anchor_message_id", Text, nullable=False),
    Column("anchor_ms", BigInteger, nullable=False),
    Column("anchor_seq", BigInteger, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("status", String(20), nullable=False),
    Column("reason", String(30)),
    Column("run_id", String(36)),
    Column("version", Integer, nullable=False),
    Column("claimed_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint(
        "workspace_id", "conversation_id", "anchor_message_id", "step_index", name="uq_idle_steps_anchor"
    ),
    Index(
        "uq_idle_steps_waiting",
        "conversation_id",
        "workspace_id",
        unique=True,
        postgresql_where=_WAITS,
        sqlite_where=_WAITS,
    ),
    Index("ix_idle_steps_due", "due_at", "id", postgresql_where=_WAITS, sqlite_where=_WAITS),
    Index(
        "ix_idle_steps_workspace_due",
        "workspace_id",
        "due_at",
        "id",
        postgresql_where=_WAITS,
        sqlite_where=_WAITS,
    ),
    Index("ix_idle_steps_claimed", "claimed_at", postgresql_where=_CLAIMED, sqlite_where=_CLAIMED),
    Index(
        "ix_idle_steps_open", "conversation_id", "workspace_id", postgresql_where=_OPEN, sqlite_where=_OPEN
    ),
    Index("ix_idle_steps_ended", "ended_at", postgresql_where=_ENDED, sqlite_where=_ENDED),
    Index("ix_idle_steps_workspace", "workspace_id", "id"),
    Index("ix_idle_steps_conversation", "workspace_id", "conversation_id", "id"),
)
