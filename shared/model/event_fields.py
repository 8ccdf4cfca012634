"""The fields of a stream entry, one by one: bytes become a checked value, or BadEvent names the field."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from shared.errors import BadEvent
from shared.model.stamps import MAX_MS, Stamp, parse_stamp
from shared.time.clock import from_epoch_ms

MAX_TYPE: Final = 100
MAX_WORKSPACE: Final = 100
MAX_ID: Final = 200
MAX_SOURCE: Final = 100

EARLIEST: Final = from_epoch_ms(0)
LATEST: Final = from_epoch_ms(MAX_MS)

_TYPE: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_INSTANT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)

Fields = Mapping[bytes, bytes]


def read_type(fields: Fields) -> str:
    """Read `type`: noun.verb, at most 100 characters."""
    text = _required(fields, "type")
    if len(text) > MAX_TYPE or not _TYPE.fullmatch(text):
        raise BadEvent("type", f"must be noun.verb in lower case, at most {MAX_TYPE} characters")
    return text


def read_workspace_id(fields: Fields) -> str:
    """Read `workspaceId`: 1 to 100 printable characters."""
    text = _required(fields, "workspaceId")
    if len(text) > MAX_WORKSPACE or not text.isprintable():
        raise BadEvent("workspaceId", f"must be 1 to {MAX_WORKSPACE} printable characters")
    return text


def read_text(fields: Fields, name: str, longest: int) -> str | None:
    """Read a field that may be missing; an empty one counts as missing."""
    raw = fields.get(name.encode())
    if not raw:
        return None
    text = _decode(raw, name)
    if len(text) > longest:
        raise BadEvent(name, f"must be at most {longest} characters")
    return text


def read_occurred_at(fields: Fields, entry: Stamp) -> datetime:
    """Read `occurredAt`, an RFC 3339 instant from 1970 to 2200; missing, it is the entry's own time."""
    text = read_text(fields, "occurredAt", 60)
    if text is None:
        return from_epoch_ms(entry[0])
    try:
        return parse_instant(text)
    except ValueError as error:
        raise BadEvent("occurredAt", str(error)) from error


def read_entry_id(entry_id: str) -> Stamp:
    """Read the entry's own id; one from beyond the year 2200 would win every comparison of stamps."""
    try:
        return parse_stamp(entry_id)
    except ValueError as error:
        raise BadEvent("entry id", str(error)) from error


def parse_instant(text: str) -> datetime:
    """Read an RFC 3339 instant from 1970 to 2200 as UTC; digits beyond microseconds are dropped.

    Raises ValueError otherwise, also for a leap second.
    """
    if not _INSTANT.fullmatch(text):
        raise ValueError("must be an RFC 3339 instant, like 2026-03-01T09:30:00Z")
    try:
        at = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"is no instant of the calendar: {error}") from error
    if not EARLIEST <= at <= LATEST:
        raise ValueError("must lie between the years 1970 and 2200")
    return at


def format_instant(at: datetime) -> str:
    """Write an aware instant as RFC 3339 in UTC."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _required(fields: Fields, name: str) -> str:
    raw = fields.get(name.encode())
    if not raw:
        raise BadEvent(name, "is missing")
    return _decode(raw, name)


def _decode(raw: bytes, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadEvent(name, "is not UTF-8") from error
