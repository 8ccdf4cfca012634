"""What waits before it acts: one row an episode of a subject, and subjects by their last change.

Revision ID: 0004
Revises: 0003
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from shared.db.types import JsonColumn, UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLE = "pending_executions"


def upgrade() -> None:
    """Create the table and the indexes, and let runs remember what they were made upon."""
    _table()
    op.create_index("uq_pending_executions_state", TABLE, _SUBJECT, unique=True, **_only(_OPEN_STATE))
    _index("ix_pending_executions_due", ["due_at", "id"], "status = 'pending'")
    _index("ix_pending_executions_workspace_due", ["workspace_id", "due_at", "id"], "status = 'pending'")
    _index("ix_pending_executions_claimed", ["claimed_at"], "status = 'processing'")
    _index("ix_pending_executions_open", ["workspace_id", "subject_type", "subject_id"], "ended_at IS NULL")
    _index("ix_pending_executions_ended", ["ended_at"], "ended_at IS NOT NULL")
    _index("ix_pending_executions_lapsed", [*_SUBJECT, "anchor_ms", "anchor_seq"], _LAPSED)
    op.create_index("ix_pending_executions_workspace", TABLE, ["workspace_id", "id"], unique=False)
    op.create_index("ix_pending_executions_automation", TABLE, ["automation_id", "id"], unique=False)
    op.add_column("automation_runs", sa.Column("seen", sa.String(length=50), nullable=True))
    op.create_index("ix_subjects_updated", "subjects", ["workspace_id", "type", "updated_at", "id"])


def downgrade() -> None:
    """Drop them, and everything in them."""
    op.drop_index("ix_subjects_updated", "subjects")
    op.drop_column("automation_runs", "seen")
    op.drop_table(TABLE)


_OPEN_STATE = "ended_at IS NULL AND anchor = 'state'"
_LAPSED = "ended_at IS NOT NULL AND anchor = 'awaiting_agent'"
_SUBJECT = ["automation_id", "subject_type", "subject_id"]


def _table() -> None:
    op.create_table(
        TABLE,
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("automation_id", sa.String(length=36), nullable=False),
        sa.Column("subject_type", sa.String(length=100), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("anchor", sa.String(length=20), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("anchor_ms", sa.BigInteger(), nullable=False),
        sa.Column("anchor_seq", sa.BigInteger(), nullable=False),
        sa.Column("trigger_event", JsonColumn, nullable=False),
        sa.Column("episode_key", sa.Text(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("due_at", UtcDateTime(), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("skip_reason", sa.String(length=30), nullable=True),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("armed_at", UtcDateTime(), nullable=False),
        sa.Column("claimed_at", UtcDateTime(), nullable=True),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint(*_SUBJECT, "episode_key", name="uq_pending_executions_episode"),
    )


def _index(name: str, columns: list[str], where: str) -> None:
    op.create_index(name, TABLE, columns, unique=False, **_only(where))


def _only(where: str) -> dict[str, Any]:
    """Name the rows that a partial index holds, for both dialects."""
    return {"postgresql_where": sa.text(where), "sqlite_where": sa.text(where)}
