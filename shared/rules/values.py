"""Values as conditions read them: paths, numbers, dates, texts. Nothing here raises on any JSON."""

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Final

_NUMBER: Final = re.compile(
    r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,3})?"
)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_STRETCH: Final = re.compile(r"([0-9]{1,6})([smhdw])")
_STRETCH_UNITS: Final[Mapping[str, timedelta]] = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_LONGEST_STRETCH: Final = timedelta(days=36_525)
_DEEPEST: Final = 64
_NUMBER_TYPES: Final = (int, float, Decimal)
_LIST_TYPES: Final = (list, tuple)


class Absence(Enum):
    """The one value that says that a path leads nowhere."""

    ABSENT = "absent"


class Kind(StrEnum):
    """How two values are compared; the words are those of a leaf's `as`."""

    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant, or a whole day in UTC."""

    at: datetime
    is_day: bool


def look_up(tree: object, steps: tuple[str, ...]) -> object:
    """Follow a path through objects (by key) and lists (by index from 0); ABSENT where it leads nowhere."""
    found = tree
    for step in steps:
        if isinstance(found, dict) or isinstance(found, Mapping):  # noqa: SIM101 - a dict is told ten times faster
            found = found.get(step, Absence.ABSENT)
        elif isinstance(found, _LIST_TYPES) and _is_index(step, len(found)):
            found = found[int(step)]
        else:
            return Absence.ABSENT
    return found


def _is_index(step: str, length: int) -> bool:
    return step.isascii() and step.isdigit() and len(step) < 10 and int(step) < length


def is_nothing(value: object) -> bool:
    """Tell whether a value is null or not there, which conditions do not tell apart."""
    return value is None or value is Absence.ABSENT


def read_number(value: object) -> Decimal | None:
    """Read a JSON number or a text that is one, exactly; None for all else (booleans, NaN, infinity)."""
    match value:
        case bool():
            return None
        case int():
            return Decimal(value)
        case float():
            return Decimal(repr(value)) if math.isfinite(value) else None
        case Decimal():
            return value if value.is_finite() else None
        case str() if _NUMBER.fullmatch(value):
            return Decimal(value)
    return None


def is_number(value: object) -> bool:
    """Tell whether a value is a JSON number; a boolean is none."""
    return isinstance(value, _NUMBER_TYPES) and not isinstance(value, bool)


def read_text(value: object) -> str | None:
    """Read a text or a number as text; None for all else."""
    if isinstance(value, str):
        return value
    return str(value) if is_number(value) else None


def read_moment(value: object) -> Moment | None:
    """Read an RFC 3339 instant, a `YYYY-MM-DD` day or an aware datetime; None for all else."""
    try:
        if isinstance(value, datetime):
            return Moment(value.astimezone(UTC), is_day=False) if value.tzinfo is not None else None
        if not isinstance(value, str):
            return None
        if _DAY.fullmatch(value):
            return Moment(datetime.fromisoformat(value).replace(tzinfo=UTC), is_day=True)
        parts = _INSTANT.fullmatch(value)
        return Moment(_read_instant(parts), is_day=False) if parts else None
    except (ValueError, OverflowError):
        return None


def _read_instant(parts: re.Match[str]) -> datetime:
    day, clock, fraction, offset = parts.groups()
    text = f"{day}T{clock}.{(fraction or '0')[:6]:0<6}{offset.upper()}"
    return datetime.fromisoformat(text).astimezone(UTC)


def read_stretch(value: object) -> timedelta | None:
    """Read a stretch of time such as `90m` (units s, m, h, d, w; at most 100 years); None for all else."""
    parts = _STRETCH.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        return None
    stretch = int(parts[1]) * _STRETCH_UNITS[parts[2]]
    return stretch if timedelta() < stretch <= _LONGEST_STRETCH else None


def fold(text: str) -> str:
    """Give the form in which two texts are equal that differ only in case."""
    return unicodedata.normalize("NFC", text).casefold()


def object_of(value: object) -> Mapping[str, Any]:
    """Give an object as it is, and an empty one for whatever is none."""
    return value if isinstance(value, Mapping) else {}


def is_same_json(one: object, other: object) -> bool:
    """Tell whether two JSON values are equal: numbers by value, lists in order, at most 64 deep."""
    return _is_same(one, other, _DEEPEST)


def _is_same(one: object, other: object, depth: int) -> bool:
    if depth == 0:
        return False
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key], depth - 1) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            _is_same(mine, theirs, depth - 1) for mine, theirs in zip(one, other, strict=True)
        )
    if is_number(one) and is_number(other):
        mine, theirs = read_number(one), read_number(other)
        return mine is not None and mine == theirs
    return type(one) is type(other) and one == other
