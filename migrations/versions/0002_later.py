"""What happens later, what is said of subjects, what people keep and are told.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

from shared.db.types import JsonColumn, UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = (
    "alert_channels",
    "alert_groups",
    "alert_sends",
    "alerts",
    "comments",
    "flags",
    "messages",
    "schedules",
    "secrets",
)


def upgrade() -> None:
    """Create the tables."""
    _alert_channels()
    _alert_groups()
    _alert_sends()
    _alerts()
    _comments()
    _flags()
    _messages()
    _schedules()
    _secrets()


def downgrade() -> None:
    """Drop them, and everything in them."""
    for name in reversed(TABLES):
        op.drop_table(name)


def _alert_channels() -> None:
    op.create_table(
        "alert_channels",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("broken_at", UtcDateTime(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("workspace_id", "name", name="uq_alert_channels_name"),
    )


def _alert_groups() -> None:
    op.create_table(
        "alert_groups",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("automation_id", sa.String(length=36), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("code", sa.String(length=100), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("told", sa.Integer(), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("first_at", UtcDateTime(), nullable=False),
        sa.Column("last_at", UtcDateTime(), nullable=False),
        sa.Column("told_at", UtcDateTime(), nullable=True),
        sa.Column("due_at", UtcDateTime(), nullable=True),
        sa.Column("muted_until", UtcDateTime(), nullable=True),
        sa.Column("regressed_at", UtcDateTime(), nullable=True),
        sa.Column("automations", JsonColumn, nullable=False),
        sa.Column("tellings", JsonColumn, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("workspace_id", "fingerprint", name="uq_alert_groups"),
    )
    op.create_index(
        "ix_alert_groups_due",
        "alert_groups",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("due_at IS NOT NULL"),
        sqlite_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_index("ix_alert_groups_last", "alert_groups", ["last_at"], unique=False)


def _alert_sends() -> None:
    op.create_table(
        "alert_sends",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("group_id", sa.String(length=36), nullable=False),
        sa.Column("automation_id", sa.String(length=36), nullable=True),
        sa.Column("channel", sa.String(length=20), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("message", JsonColumn, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("due_at", UtcDateTime(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_alert_sends_due",
        "alert_sends",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("due_at IS NOT NULL"),
        sqlite_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_index("ix_alert_sends_target", "alert_sends", ["channel", "target", "created_at"], unique=False)


def _alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("automation_id", sa.String(length=36), nullable=True),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("code", sa.String(length=100), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def _comments() -> None:
    op.create_table(
        "comments",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("subject_type", sa.String(length=100), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_comments_subject", "comments", ["workspace_id", "subject_type", "subject_id", "id"], unique=False
    )


def _flags() -> None:
    op.create_table(
        "flags",
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("enabled", sa.Integer(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "name"),
    )


def _messages() -> None:
    op.create_table(
        "messages",
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("direction", sa.String(length=10), nullable=False),
        sa.Column("sender_type", sa.String(length=20), nullable=False),
        sa.Column("sender_id", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("private", sa.Integer(), nullable=False),
        sa.Column("auto_submitted", sa.Integer(), nullable=False),
        sa.Column("stamp_ms", sa.BigInteger(), nullable=False),
        sa.Column("stamp_seq", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "id"),
    )
    op.create_index(
        "ix_messages_conversation",
        "messages",
        ["workspace_id", "conversation_id", "stamp_ms", "stamp_seq"],
        unique=False,
    )
    op.create_index("ix_messages_created", "messages", ["created_at"], unique=False)


def _schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("automation_id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("cron", sa.Text(), nullable=False),
        sa.Column("timezone", sa.String(length=100), nullable=False),
        sa.Column("next_fire_at", UtcDateTime(), nullable=True),
        sa.Column("last_slot", UtcDateTime(), nullable=True),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("automation_id"),
    )
    op.create_index("ix_schedules_due", "schedules", ["next_fire_at"], unique=False)


def _secrets() -> None:
    op.create_table(
        "secrets",
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "name"),
    )
