"""The tables of the API: requests that may come twice."""

from typing import Final

from sqlalchemy import Column, Index, Integer, PrimaryKeyConstraint, String, Table, Text

from shared.db.tables import METADATA
from shared.db.types import JsonColumn, UtcDateTime

# `body` is encrypted: an answer may hold what is shown only once.
IDEMPOTENCY_KEYS: Final = Table(
    "idempotency_keys",
    METADATA,
    Column("api_key_id", String(36), nullable=False),
    Column("key", String(255), nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("owner", String(36), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("held_until", UtcDateTime, nullable=False),
    Column("effected_at", UtcDateTime),
    Column("status", Integer),
    Column("headers", JsonColumn),
    Column("body", Text),
    PrimaryKeyConstraint("api_key_id", "key"),
    Index("ix_idempotency_created", "created_at"),
)
