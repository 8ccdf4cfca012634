"""The tables as they stand after the newest migration; a test compares the two. Queries stand elsewhere."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from shared.db.types import JsonColumn, UtcDateTime

METADATA: Final = MetaData()
_Serial = BigInteger().with_variant(Integer, "sqlite")

WORKSPACES: Final = Table(
    "workspaces",
    METADATA,
    Column("id", String(100), primary_key=True),
    Column("name", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

MEMBERS: Final = Table(
    "members",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("email", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", String(20), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("workspace_id", "email", name="uq_members_email"),
)

API_KEYS: Final = Table(
    "api_keys",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("name", Text, nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("last4", String(4), nullable=False),
    Column("scopes", JsonColumn, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("last_used_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
)

AUTOMATIONS: Final = Table(
    "automations",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("key", String(100), nullable=False),
    Column("name", Text, nullable=False),
    Column("status", String(20), nullable=False),
    Column("version", Integer, nullable=False),
    Column("definition", JsonColumn, nullable=False),
    Column("activated_ms", BigInteger),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("deleted_at", UtcDateTime),
    Index(
        "uq_automations_key",
        "workspace_id",
        "key",
        unique=True,
        postgresql_where=text("deleted_at IS NULL"),
        sqlite_where=text("deleted_at IS NULL"),
    ),
    Index("ix_automations_updated", "updated_at"),
)

AUTOMATION_VERSIONS: Final = Table(
    "automation_versions",
    METADATA,
    Column("automation_id", String(36), nullable=False),
    Column("version", Integer, nullable=False),
    Column("definition", JsonColumn, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("automation_id", "version"),
)

RUNS: Final = Table(
    "automation_runs",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("automation_id", String(36)),
    Column("automation_version", Integer),
    Column("source", String(20), nullable=False),
    Column("source_id", Text, nullable=False),
    Column("event_key", Text),
    Column("event_hash", String(64)),
    Column("entry_id", String(50)),
    Column("trigger_type", String(50), nullable=False),
    Column("subject_type", String(100)),
    Column("subject_id", Text),
    Column("status", String(20), nullable=False),
    Column("skip_reason", String(50)),
    Column("error", JsonColumn),
    Column("input", JsonColumn, nullable=False),
    Column("event", JsonColumn),
    Column("output", JsonColumn),
    Column("depth", Integer, nullable=False),
    Column("root_run_id", String(36), nullable=False),
    Column("retry_count", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("crash_count", Integer, nullable=False),
    Column("lease", BigInteger, nullable=False),
    Column("lease_until", UtcDateTime),
    Column("owner", Text),
    Column("queue", String(20), nullable=False),
    Column("enqueued_at", UtcDateTime, nullable=False),
    Column("next_attempt_at", UtcDateTime),
    Column("stop_reason", String(50)),
    Column("fingerprint", String(64)),
    Column("seen", String(50)),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("title", Text),
    UniqueConstraint("source", "source_id", name="uq_runs_source"),
    Index("ix_runs_workspace", "workspace_id", "id"),
    Index("ix_runs_automation", "automation_id", "id"),
    Index(
        "ix_runs_status",
        "workspace_id",
        "status",
        "id",
        postgresql_where=text("status <> 'SUCCEEDED'"),
        sqlite_where=text("status <> 'SUCCEEDED'"),
    ),
    Index(
        "ix_runs_lease",
        "lease_until",
        postgresql_where=text("status = 'RUNNING'"),
        sqlite_where=text("status = 'RUNNING'"),
    ),
    Index(
        "ix_runs_waiting",
        "enqueued_at",
        postgresql_where=text("status = 'PENDING'"),
        sqlite_where=text("status = 'PENDING'"),
    ),
    Index(
        "ix_runs_fingerprint",
        "workspace_id",
        "fingerprint",
        "id",
        postgresql_where=text("status = 'DEAD_LETTER'"),
        sqlite_where=text("status = 'DEAD_LETTER'"),
    ),
)

RUN_ACTIONS: Final = Table(
    "run_actions",
    METADATA,
    Column("run_id", String(36), nullable=False),
    Column("position", Integer, nullable=False),
    Column("type", String(100), nullable=False),
    Column("lease", BigInteger, nullable=False),
    Column("output", JsonColumn, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("run_id", "position"),
)

RUN_ATTEMPTS: Final = Table(
    "run_attempts",
    METADATA,
    Column("run_id", String(36), nullable=False),
    Column("lease", BigInteger, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("code", String(100)),
    Column("message", Text),
    Column("position", Integer),
    Column("owner", Text),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("run_id", "lease"),
)

LOGS: Final = Table(
    "automation_logs",
    METADATA,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("xid", BigInteger, nullable=False),
    Column("workspace_id", String(100), nullable=False),
    Column("automation_id", String(36)),
    Column("run_id", String(36)),
    Column("level", String(10), nullable=False),
    Column("message", Text, nullable=False),
    Column("data", JsonColumn),
    Column("at", UtcDateTime, nullable=False),
    Index("ix_logs_run", "run_id", "id"),
    Index("ix_logs_stream", "workspace_id", "xid", "id"),
)

OUTBOX: Final = Table(
    "outbox",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("run_id", String(36)),
    Column("fields", JsonColumn, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("sent_at", UtcDateTime),
    Index(
        "ix_outbox_unsent",
        "created_at",
        postgresql_where=text("sent_at IS NULL"),
        sqlite_where=text("sent_at IS NULL"),
    ),
)

SUBJECTS: Final = Table(
    "subjects",
    METADATA,
    Column("workspace_id", String(100), nullable=False),
    Column("type", String(100), nullable=False),
    Column("id", Text, nullable=False),
    Column("data", JsonColumn, nullable=False),
    Column("writes", JsonColumn, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("deleted_at", UtcDateTime),
    PrimaryKeyConstraint("workspace_id", "type", "id"),
    Index("ix_subjects_updated", "workspace_id", "type", "updated_at", "id"),
)

NOTIFICATIONS: Final = Table(
    "notifications",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("member_id", String(36), nullable=False),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("resource_type", String(50), nullable=False),
    Column("resource_id", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("read_at", UtcDateTime),
    Index("ix_notifications_member", "member_id", "id"),
    Index("ix_notifications_workspace", "workspace_id", "id"),
    Index("ix_notifications_resource", "resource_type", "resource_id"),
)

AUDIT: Final = Table(
    "audit",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", String(100), nullable=False),
    Column("resource_type", String(50), nullable=False),
    Column("resource_id", Text, nullable=False),
    Column("detail", JsonColumn),
    Column("at", UtcDateTime, nullable=False),
    Index("ix_audit_workspace", "workspace_id", "id"),
)

LOCKS: Final = Table(
    "locks",
    METADATA,
    Column("name", String(50), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("until", UtcDateTime, nullable=False),
)
