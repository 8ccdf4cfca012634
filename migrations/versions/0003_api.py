"""What is asked for over HTTP and at desks: runs by their trouble, many of them at once.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

from shared.db.types import JsonColumn, UtcDateTime, read_json
from shared.rules.troubles import trouble_of

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

PAGE = 1000


def upgrade() -> None:
    """Create the tables and columns."""
    _fingerprints()
    _bulk_operations()
    _idempotency_keys()
    op.create_index("ix_notifications_workspace", "notifications", ["workspace_id", "id"], unique=False)


def downgrade() -> None:
    """Drop them, and everything in them."""
    op.drop_index("ix_notifications_workspace", "notifications")
    op.drop_table("idempotency_keys")
    op.drop_table("bulk_operations")
    op.drop_index("ix_runs_fingerprint", "automation_runs")
    op.drop_column("automation_runs", "fingerprint")


def _fingerprints() -> None:
    op.add_column("automation_runs", sa.Column("fingerprint", sa.String(length=64), nullable=True))
    _mark_dead_letters()
    op.create_index(
        "ix_runs_fingerprint",
        "automation_runs",
        ["workspace_id", "fingerprint", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'DEAD_LETTER'"),
        sqlite_where=sa.text("status = 'DEAD_LETTER'"),
    )


def _mark_dead_letters() -> None:
    """Give the dead letters that there are the fingerprints that new ones get."""
    runs = sa.table(
        "automation_runs", *map(sa.column, ("id", "automation_id", "status", "error", "fingerprint"))
    )
    wanted = sa.select(runs.c.id, runs.c.automation_id, runs.c.error).where(
        runs.c.status == "DEAD_LETTER", runs.c.error.is_not(None), runs.c.id > sa.bindparam("after")
    )
    mark = sa.update(runs).where(runs.c.id == sa.bindparam("run")).values(fingerprint=sa.bindparam("mark"))
    conn = op.get_bind()
    after = ""
    while rows := conn.execute(wanted.order_by(runs.c.id).limit(PAGE), {"after": after}).all():
        conn.execute(
            mark, [{"run": row.id, "mark": _fingerprint_of(row.error, row.automation_id)} for row in rows]
        )
        after = rows[-1].id


def _fingerprint_of(stored: object, automation_id: str | None) -> str:
    error = read_json(stored)
    return trouble_of(error["code"], error["message"], automation_id or "").fingerprint


def _bulk_operations() -> None:
    op.create_table(
        "bulk_operations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("workspace_id", sa.String(length=100), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("filter", JsonColumn, nullable=False),
        sa.Column("start", sa.String(length=20), nullable=True),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("more", sa.Integer(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("skipped", JsonColumn, nullable=False),
        sa.Column("after_id", sa.String(length=36), nullable=False),
        sa.Column("until_id", sa.String(length=36), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("confirmed_by", sa.Text(), nullable=True),
        sa.Column("confirmed_at", UtcDateTime(), nullable=True),
        sa.Column("moved_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_bulk_operations_workspace", "bulk_operations", ["workspace_id", "id"], unique=False)
    op.create_index(
        "ix_bulk_operations_going",
        "bulk_operations",
        ["moved_at"],
        unique=False,
        postgresql_where=sa.text("status IN ('CONFIRMED', 'RUNNING')"),
        sqlite_where=sa.text("status IN ('CONFIRMED', 'RUNNING')"),
    )


def _idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("api_key_id", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(length=36), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("held_until", UtcDateTime(), nullable=False),
        sa.Column("effected_at", UtcDateTime(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", JsonColumn, nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("api_key_id", "key"),
    )
    op.create_index("ix_idempotency_created", "idempotency_keys", ["created_at"], unique=False)
