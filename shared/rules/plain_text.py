"""How a JSON value looks as text: to a reader, and inside a JSON document."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal


class JsonText(str):
    """Text that is one whole JSON value already, so that it is not quoted a second time."""

    __slots__ = ()


def instant_text(at: datetime) -> str:
    """Write an aware instant as RFC 3339 in UTC, with a fraction only where there is one."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def as_text(value: object) -> str:
    """Write a value for a reader: null is empty, booleans are `true` and `false`, lists and objects are JSON.

    Raises ValueError or TypeError for what is no JSON value.
    """
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return ""
        case int() | float() | Decimal():
            return str(value)
        case range():
            return f"{value.start}..{value.stop - 1}"
        case datetime():
            return instant_text(value)
    return as_json(value)


def as_json(value: object) -> str:
    """Write a value as JSON; raises ValueError or TypeError for what JSON cannot say."""
    if isinstance(value, JsonText):
        return str(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_as_plain)


def as_json_string_body(value: object) -> str:
    """Write a value as the inside of a JSON string: its text, escaped, without the quotes around it."""
    return json.dumps(as_text(value), ensure_ascii=False)[1:-1]


def _as_plain(value: object) -> object:
    match value:
        case datetime():
            return instant_text(value)
        case Mapping():
            return dict(value)
        case range():
            return list(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")
