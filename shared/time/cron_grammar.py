"""The cron expressions that we take, read into sets of values. No clock, no zone, no library.

Five fields, or six with seconds first, or a macro. A field is `*`, `?` (day fields), or a list of `*/n`, `a`,
`a-b`, `a-b/n`, `a/n`; months and days have names; 7 is Sunday; `L` is the last day of the month; `d#n` is the
nth such weekday of the month.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

MAX_LENGTH: Final = 256
LAST_DAY: Final = "L"
MACROS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "@yearly": "0 0 1 1 *",
        "@annually": "0 0 1 1 *",
        "@monthly": "0 0 1 * *",
        "@weekly": "0 0 * * 0",
        "@daily": "0 0 * * *",
        "@midnight": "0 0 * * *",
        "@hourly": "0 * * * *",
    }
)
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_PART: Final = re.compile(
    r"(?:\*|(?P<low>[0-9]+|[A-Z]{3})(?:-(?P<high>[0-9]+|[A-Z]{3}))?)(?:/(?P<step>[0-9]+))?"
)
_NTH: Final = re.compile(r"(?P<day>[0-7]|[A-Z]{3})#(?P<nth>[1-5])")
_SUNDAY_AT_END: Final = 7


@dataclass(frozen=True, slots=True)
class _Kind:
    """What one field may hold; `names` stand for the values from `low` on."""

    label: str
    low: int
    high: int
    size: int
    names: tuple[str, ...] = ()


_SECOND: Final = _Kind("second", 0, 59, 60)
_MINUTE: Final = _Kind("minute", 0, 59, 60)
_HOUR: Final = _Kind("hour", 0, 23, 24)
_DAY: Final = _Kind("day of month", 1, 31, 31)
_MONTH: Final = _Kind("month", 1, 12, 12, _MONTHS)
_WEEKDAY: Final = _Kind("day of week", 0, _SUNDAY_AT_END, 7, _WEEKDAYS)


@dataclass(frozen=True, slots=True)
class Field:
    """The values that one field names. `starred`: it begins with `*`, which says more than its values do."""

    values: frozenset[int]
    starred: bool
    is_full: bool
    has_last: bool = False
    nths: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class CronFields:
    """An expression as sets: weekdays are 0 (Sunday) to 6; a weekday's nths are (weekday, nth) pairs."""

    second: Field
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field


def parse_cron(expr: str) -> CronFields:
    """Read an expression. Raises ValueError that names the field and what is wrong with it."""
    if not _is_short_ascii(expr):
        raise ValueError(f"a cron expression is ASCII text of at most {MAX_LENGTH} characters")
    text = MACROS.get(expr.strip(" \t"), expr)
    parts = [part for part in re.split("[ \t]+", text) if part]
    if text.lstrip(" \t").startswith("@"):
        raise ValueError(f"unknown macro {text.strip()!r}: use one of {', '.join(MACROS)}")
    if len(parts) not in (5, 6):
        raise ValueError("a cron expression has five fields, or six with seconds first")
    second = parts.pop(0) if len(parts) == 6 else "0"
    minute, hour, day, month, weekday = parts
    return CronFields(
        second=_field(second, _SECOND),
        minute=_field(minute, _MINUTE),
        hour=_field(hour, _HOUR),
        day=_day_field(day),
        month=_field(month, _MONTH),
        weekday=_weekday_field(weekday),
    )


def _is_short_ascii(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and len(value) <= MAX_LENGTH


def _day_field(text: str) -> Field:
    text = "*" if text == "?" else text
    parts = text.upper().split(",")
    plain = [part for part in parts if part != LAST_DAY]
    field = _field(",".join(plain), _DAY) if plain else Field(frozenset(), starred=False, is_full=False)
    return Field(field.values, field.starred and parts[0] != LAST_DAY, field.is_full, len(plain) < len(parts))


def _weekday_field(text: str) -> Field:
    text = "*" if text == "?" else text
    parts = text.upper().split(",")
    nths = {part: found for part in parts if (found := _NTH.fullmatch(part))}
    plain = [part for part in parts if part not in nths]
    field = _field(",".join(plain), _WEEKDAY) if plain else Field(frozenset(), starred=False, is_full=False)
    pairs = frozenset((_value(found["day"], _WEEKDAY) % 7, int(found["nth"])) for found in nths.values())
    days = frozenset(day % 7 for day in field.values)
    return Field(days, field.starred and parts[0] not in nths, len(days) == _WEEKDAY.size, nths=pairs)


def _field(text: str, kind: _Kind) -> Field:
    if text == "*":
        return Field(frozenset(range(kind.low, kind.high + 1)), starred=True, is_full=True)
    values = frozenset(value for part in text.upper().split(",") for value in _part(part, kind))
    return Field(values, text.startswith("*"), len(values) >= kind.size)


def _part(text: str, kind: _Kind) -> range:
    match = _PART.fullmatch(text)
    if match is None or text == "*":
        raise ValueError(f"{kind.label}: cannot read {text!r}")
    step = _step(match["step"], kind)
    if match["low"] is None:
        return range(kind.low, kind.low + kind.size, step)
    low = _value(match["low"], kind)
    if match["high"] is not None:
        high = _range_end(match["high"], kind)
    else:
        high = low if match["step"] is None else max(low, kind.low + kind.size - 1)
    if high < low:
        raise ValueError(f"{kind.label}: {text!r} runs backwards")
    return range(low, high + 1, step)


def _range_end(text: str, kind: _Kind) -> int:
    return _SUNDAY_AT_END if text == _WEEKDAYS[0] and kind is _WEEKDAY else _value(text, kind)


def _step(text: str | None, kind: _Kind) -> int:
    if text is None:
        return 1
    step = int(text)
    if not 1 <= step <= kind.size:
        raise ValueError(f"{kind.label}: a step is 1 to {kind.size}, not {text}")
    return step


def _value(text: str, kind: _Kind) -> int:
    if text in kind.names:
        return kind.low + kind.names.index(text)
    if not text.isdigit() or not kind.low <= int(text) <= kind.high:
        raise ValueError(f"{kind.label}: {text!r} is not a value from {kind.low} to {kind.high}")
    return int(text)
