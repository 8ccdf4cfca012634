"""Idle sequences: AI agents and channels with their rules, global flags, the steps that wait.

Revision ID: 0005
Revises: 0004
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from shared.db.types import JsonColumn, UtcDateTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STEPS = "idle_steps"


def upgrade() -> None:
    """Create the tables, let a message tell what wrote it, and name runs that have no automation."""
    _ai_agents()
    _channels()
    _feature_flags()
    _idle_steps()
    op.add_column("messages", sa.Column("parameters", JsonColumn, nullable=True))
    op.add_column("automation_runs", sa.Column("title", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop them, and everything in them."""
    op.drop_column("automation_runs", "title")
    op.drop_column("messages", "parameters")
    for table in (STEPS, "feature_flags", "channels", "ai_agents"):
        op.drop_table(table)


def _ai_agents() -> None:
    op.create_table(
        "ai_agents",
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("id", sa.String(length=100), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("parameters", JsonColumn, nullable=False),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "id"),
    )


def _channels() -> None:
    op.create_table(
        "channels",
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("id", sa.String(length=100), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("enabled", sa.Integer(), nullable=False),
        sa.Column("settings", JsonColumn, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "id"),
    )


def _feature_flags() -> None:
    op.create_table(
        "feature_flags",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("enabled", sa.Integer(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _idle_steps() -> None:
    op.create_table(
        STEPS,
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("sequence_id", sa.String(length=36), nullable=False),
        sa.Column("rule", sa.String(length=10), nullable=False),
        sa.Column("agent_id", sa.String(length=100), nullable=True),
        sa.Column("channel_id", sa.String(length=100), nullable=True),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("step_count", sa.Integer(), nullable=False),
        sa.Column("action", sa.String(length=20), nullable=False),
        sa.Column("anchor_message_id", sa.Text(), nullable=False),
        sa.Column("anchor_ms", sa.BigInteger(), nullable=False),
        sa.Column("anchor_seq", sa.BigInteger(), nullable=False),
        sa.Column("due_at", UtcDateTime(), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.String(length=30), nullable=True),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("claimed_at", UtcDateTime(), nullable=True),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint(*_CONVERSATION, "anchor_message_id", "step_index", name="uq_idle_steps_anchor"),
    )
    op.create_index("uq_idle_steps_waiting", STEPS, _BY_CONVERSATION, unique=True, **_only(_WAITS))
    _index("ix_idle_steps_due", ["due_at", "id"], _WAITS)
    _index("ix_idle_steps_workspace_due", ["workspace_id", "due_at", "id"], _WAITS)
    _index("ix_idle_steps_claimed", ["claimed_at"], "status = 'processing' AND run_id IS NULL")
    _index("ix_idle_steps_open", _BY_CONVERSATION, "status IN ('pending', 'processing')")
    _index("ix_idle_steps_ended", ["ended_at"], "ended_at IS NOT NULL")
    op.create_index("ix_idle_steps_workspace", STEPS, ["workspace_id", "id"], unique=False)
    op.create_index("ix_idle_steps_conversation", STEPS, [*_CONVERSATION, "id"], unique=False)


_CONVERSATION = ["workspace_id", "conversation_id"]
_BY_CONVERSATION = ["conversation_id", "workspace_id"]
_WAITS = "status = 'pending'"


def _index(name: str, columns: list[str], where: str) -> None:
    op.create_index(name, STEPS, columns, unique=False, **_only(where))


def _only(where: str) -> dict[str, Any]:
    """Name the rows that a partial index holds, for both dialects."""
    return {"postgresql_where": sa.text(where), "sqlite_where": sa.text(where)}
