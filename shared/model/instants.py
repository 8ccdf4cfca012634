"""Instants in queries and bodies of JSON: RFC 3339 and nothing else, between the years 1970 and 2200."""

from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from shared.model.event_fields import parse_instant


def read_instant(text: object) -> datetime:
    """Read an instant, or let one pass. Raises ValueError that says how to write one."""
    if isinstance(text, datetime) and text.tzinfo is not None:
        return text
    if not isinstance(text, str):
        raise ValueError("must be an RFC 3339 instant, like 2026-03-01T09:30:00Z")
    return parse_instant(text)


Instant = Annotated[
    datetime,
    BeforeValidator(read_instant),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-03-01T09:30:00Z"]}),
]
