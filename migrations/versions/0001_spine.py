"""The spine: workspaces, people, automations, runs with all that is on record of them, outbox, subjects.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op

from shared.db.types import JsonColumn, UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TABLES = (
    "api_keys",
    "audit",
    "automation_logs",
    "automation_runs",
    "automation_versions",
    "automations",
    "locks",
    "members",
    "notifications",
    "outbox",
    "run_actions",
    "run_attempts",
    "subjects",
    "workspaces",
)


def upgrade() -> None:
    """Create the tables of the spine."""
    _api_keys()
    _audit()
    _automation_logs()
    _automation_runs()
    _automation_versions()
    _automations()
    _locks()
    _members()
    _notifications()
    _outbox()
    _run_actions()
    _run_attempts()
    _subjects()
    _workspaces()


def downgrade() -> None:
    """Drop them, and everything in them."""
    for name in reversed(TABLES):
        op.drop_table(name)


def _api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("last4", sa.String(length=4), nullable=False),
        sa.Column("scopes", JsonColumn, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("last_used_at", UtcDateTime(), nullable=True),
        sa.Column("revoked_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key_hash"),
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.String(length=100), nullable=False),
        sa.Column("resource_type", sa.String(length=50), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=False),
        sa.Column("detail", JsonColumn, nullable=True),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_audit_workspace", "audit", ["workspace_id", "id"], unique=False)


def _automation_logs() -> None:
    op.create_table(
        "automation_logs",
        sa.Column("id", SERIAL, autoincrement=True, nullable=False),
        sa.Column("xid", sa.BigInteger(), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("automation_id", sa.String(length=36), nullable=True),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("level", sa.String(length=10), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("data", JsonColumn, nullable=True),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_logs_run", "automation_logs", ["run_id", "id"], unique=False)
    op.create_index("ix_logs_stream", "automation_logs", ["workspace_id", "xid", "id"], unique=False)


def _automation_runs() -> None:
    op.create_table(
        "automation_runs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("automation_id", sa.String(length=36), nullable=True),
        sa.Column("automation_version", sa.Integer(), nullable=True),
        sa.Column("source", sa.String(length=20), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("event_key", sa.Text(), nullable=True),
        sa.Column("event_hash", sa.String(length=64), nullable=True),
        sa.Column("entry_id", sa.String(length=50), nullable=True),
        sa.Column("trigger_type", sa.String(length=50), nullable=False),
        sa.Column("subject_type", sa.String(length=100), nullable=True),
        sa.Column("subject_id", sa.Text(), nullable=True),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("skip_reason", sa.String(length=50), nullable=True),
        sa.Column("error", JsonColumn, nullable=True),
        sa.Column("input", JsonColumn, nullable=False),
        sa.Column("event", JsonColumn, nullable=True),
        sa.Column("output", JsonColumn, nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("root_run_id", sa.String(length=36), nullable=False),
        sa.Column("retry_count", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("crash_count", sa.Integer(), nullable=False),
        sa.Column("lease", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", UtcDateTime(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("queue", sa.String(length=20), nullable=False),
        sa.Column("enqueued_at", UtcDateTime(), nullable=False),
        sa.Column("next_attempt_at", UtcDateTime(), nullable=True),
        sa.Column("stop_reason", sa.String(length=50), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("source", "source_id", name="uq_runs_source"),
    )
    op.create_index("ix_runs_automation", "automation_runs", ["automation_id", "id"], unique=False)
    op.create_index(
        "ix_runs_lease",
        "automation_runs",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("status = 'RUNNING'"),
        postgresql_where=sa.text("status = 'RUNNING'"),
    )
    op.create_index(
        "ix_runs_status",
        "automation_runs",
        ["workspace_id", "status", "id"],
        unique=False,
        sqlite_where=sa.text("status <> 'SUCCEEDED'"),
        postgresql_where=sa.text("status <> 'SUCCEEDED'"),
    )
    op.create_index(
        "ix_runs_waiting",
        "automation_runs",
        ["enqueued_at"],
        unique=False,
        sqlite_where=sa.text("status = 'PENDING'"),
        postgresql_where=sa.text("status = 'PENDING'"),
    )
    op.create_index("ix_runs_workspace", "automation_runs", ["workspace_id", "id"], unique=False)


def _automation_versions() -> None:
    op.create_table(
        "automation_versions",
        sa.Column("automation_id", sa.String(length=36), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("definition", JsonColumn, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("automation_id", "version"),
    )


def _automations() -> None:
    op.create_table(
        "automations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("key", sa.String(length=100), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("definition", JsonColumn, nullable=False),
        sa.Column("activated_ms", sa.BigInteger(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_automations_updated", "automations", ["updated_at"], unique=False)
    op.create_index(
        "uq_automations_key",
        "automations",
        ["workspace_id", "key"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )


def _locks() -> None:
    op.create_table(
        "locks",
        sa.Column("name", sa.String(length=50), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("until", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _members() -> None:
    op.create_table(
        "members",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("workspace_id", "email", name="uq_members_email"),
    )


def _notifications() -> None:
    op.create_table(
        "notifications",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("member_id", sa.String(length=36), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("resource_type", sa.String(length=50), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("read_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_notifications_member", "notifications", ["member_id", "id"], unique=False)
    op.create_index(
        "ix_notifications_resource", "notifications", ["resource_type", "resource_id"], unique=False
    )


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("fields", JsonColumn, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("sent_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_outbox_unsent",
        "outbox",
        ["created_at"],
        unique=False,
        sqlite_where=sa.text("sent_at IS NULL"),
        postgresql_where=sa.text("sent_at IS NULL"),
    )


def _run_actions() -> None:
    op.create_table(
        "run_actions",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("type", sa.String(length=100), nullable=False),
        sa.Column("lease", sa.BigInteger(), nullable=False),
        sa.Column("output", JsonColumn, nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position"),
    )


def _run_attempts() -> None:
    op.create_table(
        "run_attempts",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("lease", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("code", sa.String(length=100), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("ended_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "lease"),
    )


def _subjects() -> None:
    op.create_table(
        "subjects",
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("type", sa.String(length=100), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("data", JsonColumn, nullable=False),
        sa.Column("writes", JsonColumn, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("workspace_id", "type", "id"),
    )


def _workspaces() -> None:
    op.create_table(
        "workspaces",
        sa.Column("id", sa.String(length=100), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
