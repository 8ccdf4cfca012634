"""How an instant and a JSON value stand in a row, in both dialects."""

from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import JSON, DateTime, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

JsonColumn = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC instant with microseconds: timestamptz on PostgreSQL, sortable ISO text on SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose text on SQLite, which has no instant of its own."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String(32))
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Refuse a naive instant: it would mean another moment on another machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("naive datetime")
        return write_instant(value) if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Give the instant back aware, in UTC."""
        return read_instant(value)


def write_instant(at: datetime) -> str:
    """Give an instant as the text that both dialects store and compare."""
    return at.astimezone(UTC).isoformat()


def read_instant(value: object) -> datetime | None:
    """Read an instant column of a plain row: aware UTC, or None for NULL."""
    match value:
        case None:
            return None
        case datetime():
            return value.astimezone(UTC)
        case str():
            return datetime.fromisoformat(value)
        case _:
            raise TypeError(f"not an instant: {value!r}")


def must_instant(value: object) -> datetime:
    """Read an instant column that is never NULL."""
    at = read_instant(value)
    if at is None:
        raise TypeError("instant is NULL")
    return at


def read_json(value: object) -> Any:
    """Read a JSON column of a plain row; NULL is None."""
    return orjson.loads(value) if isinstance(value, str | bytes) else value


def read_any_json(value: object) -> Any:
    """Read a JSON column that SQL alone may have written: what cannot be read is given as it stands."""
    try:
        return read_json(value)
    except orjson.JSONDecodeError:
        return value
