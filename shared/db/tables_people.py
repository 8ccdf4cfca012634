"""The tables of what people keep and are told: secrets, flags, alerts and where they are sent."""

from typing import Final

from sqlalchemy import (
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

# `value` is encrypted; whoever reads the table alone learns the names.
SECRETS: Final = Table(
    "secrets",
    METADATA,
    Column("workspace_id", String(100), nullable=False),
    Column("name", String(100), nullable=False),
    Column("value", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("workspace_id", "name"),
)

FLAGS: Final = Table(
    "flags",
    METADATA,
    Column("workspace_id", String(100), nullable=False),
    Column("name", String(100), nullable=False),
    Column("enabled", Integer, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("workspace_id", "name"),
)

# One row a dead letter, written with it; folded into its group and deleted by whoever tells people.
ALERTS: Final = Table(
    "alerts",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("automation_id", String(36)),
    Column("run_id", String(36), nullable=False),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("code", String(100), nullable=False),
    Column("target", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

# `tellings` holds for each channel how many a message to it told of, and when the last one was written;
# `automations` how many dead letters each automation has in the group.
ALERT_GROUPS: Final = Table(
    "alert_groups",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("automation_id", String(36)),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("code", String(100), nullable=False),
    Column("target", Text, nullable=False),
    Column("run_id", String(36), nullable=False),
    Column("count", Integer, nullable=False),
    Column("told", Integer, nullable=False),
    Column("times", Integer, nullable=False),
    Column("first_at", UtcDateTime, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
    Column("told_at", UtcDateTime),
    Column("due_at", UtcDateTime),
    Column("muted_until", UtcDateTime),
    Column("regressed_at", UtcDateTime),
    Column("automations", JsonColumn, nullable=False),
    Column("tellings", JsonColumn, nullable=False),
    UniqueConstraint("workspace_id", "fingerprint", name="uq_alert_groups"),
    Index(
        "ix_alert_groups_due",
        "due_at",
        postgresql_where=text("due_at IS NOT NULL"),
        sqlite_where=text("due_at IS NOT NULL"),
    ),
    Index("ix_alert_groups_last", "last_at"),
)

# `url` and `secret` are encrypted.
ALERT_CHANNELS: Final = Table(
    "alert_channels",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("name", String(100), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("url", Text, nullable=False),
    Column("secret", Text),
    Column("failures", Integer, nullable=False),
    Column("broken_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("workspace_id", "name", name="uq_alert_channels_name"),
)

ALERT_SENDS: Final = Table(
    "alert_sends",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("group_id", String(36), nullable=False),
    Column("automation_id", String(36)),
    Column("channel", String(20), nullable=False),
    Column("target", Text, nullable=False),
    Column("message", JsonColumn, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("error", Text),
    Column("due_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("status", String(20), nullable=False),
    Index(
        "ix_alert_sends_due",
        "due_at",
        postgresql_where=text("due_at IS NOT NULL"),
        sqlite_where=text("due_at IS NOT NULL"),
    ),
    Index("ix_alert_sends_target", "channel", "target", "created_at"),
)
