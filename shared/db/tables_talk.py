"""The tables of what is said about subjects: comments, and the messages of conversations."""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, PrimaryKeyConstraint, String, Table, Text

from shared.db.tables import METADATA
from shared.db.types import JsonColumn, UtcDateTime

COMMENTS: Final = Table(
    "comments",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("workspace_id", String(100), nullable=False),
    Column("subject_type", String(100), nullable=False),
    Column("subject_id", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("run_id", String(36)),
    Column("created_at", UtcDateTime, nullable=False),
    Index("ix_comments_subject", "workspace_id", "subject_type", "subject_id", "id"),
)

# `stamp_ms` and `stamp_seq` order a conversation's messages as the stream did. `parameters` say which step of
# a sequence wrote one.
MESSAGES: Final = Table(
    "messages",
    METADATA,
    Column("workspace_id", String(100), nullable=False),
    Column("id", Text, nullable=False),
    Column("conversation_id", Text, nullable=False),
    Column("direction", String(10), nullable=False),
    Column("sender_type", String(20), nullable=False),
    Column("sender_id", Text),
    Column("agent_id", Text),
    Column("content", Text, nullable=False),
    Column("private", Integer, nullable=False),
    Column("auto_submitted", Integer, nullable=False),
    Column("stamp_ms", BigInteger, nullable=False),
    Column("stamp_seq", BigInteger, nullable=False),
    Column("run_id", String(36)),
    Column("created_at", UtcDateTime, nullable=False),
    Column("parameters", JsonColumn),
    PrimaryKeyConstraint("workspace_id", "id"),
    Index("ix_messages_conversation", "workspace_id", "conversation_id", "stamp_ms", "stamp_seq"),
    Index("ix_messages_created", "created_at"),
)
