"""Wall clock to UTC: which zone names we take, and what a time somebody wrote means in one of them.

Zones come from the `tzdata` wheel, never from the operating system's files, which are often older. They are
read from the package itself, so that no global of `zoneinfo` is touched and import order cannot matter.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Final
from zoneinfo import ZoneInfo

_SHAPE: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?P<offset>Z|[+-]\d{2}:\d{2})?", re.ASCII
)
_QUOTED_MAX: Final = 40
_LIKENESS: Final = 0.85


def check_zone(name: str) -> None:
    """Raise ValueError unless `name` is `UTC` or an Area/Place name of the pinned `tzdata`, case included."""
    if not _is_zone_name(name):
        raise ValueError(f"unknown time zone {_quoted(name)}: {_meant(name)}")


def resolve(text: str, zone: str) -> datetime:
    """Give the UTC instant of `YYYY-MM-DDTHH:MM[:SS[.ffffff]]`, read in `zone`, or pinned by Z or an offset.

    A time that a clock change skips is moved on by the length of the gap (02:30 reads as 03:30); of one that
    comes twice the first is meant. Raises ValueError for any other shape, a date that is not in the
    calendar, an unknown zone.
    """
    check_zone(zone)
    match = _shape(text)
    if match is None:
        raise ValueError(f"{_quoted(text)} is not a time: write YYYY-MM-DDTHH:MM:SS, offset or not")
    try:
        at = datetime.fromisoformat(text)
        if match["offset"] is None:
            at = at.replace(tzinfo=zone_info(zone), fold=0)
        return at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{_quoted(text)} is not a time: {error}") from error


def _meant(name: object) -> str:
    """Say which name may be meant: one that differs in case, or by a slip."""
    near = get_close_matches(str(name)[:_QUOTED_MAX].lower(), _lower_names(), 1, _LIKENESS)
    return f"did you mean {_lower_names()[near[0]]}?" if near else "use UTC or a name such as Europe/Paris"


@lru_cache(maxsize=1)
def _lower_names() -> Mapping[str, str]:
    return {name.lower(): name for name in zone_names()}


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """List every zone name that `check_zone` accepts."""
    listed = files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    return frozenset({"UTC", *(name for name in listed if "/" in name)})


@lru_cache(maxsize=1024)
def zone_info(name: str) -> ZoneInfo:
    """Load a zone of the pinned `tzdata`. Raises ValueError as `check_zone` does."""
    check_zone(name)
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as source:
        return ZoneInfo.from_file(source, key=name)


def to_local(at: datetime, zone: str) -> datetime:
    """Give what a clock on the wall of `zone` shows at an aware instant, as a naive time."""
    return at.astimezone(zone_info(zone)).replace(tzinfo=None, fold=0)


def offset_at(at: datetime, zone: str) -> timedelta:
    """Give how far the clocks of `zone` are ahead of UTC at an aware instant."""
    return _offset(at.astimezone(zone_info(zone)))


def readings(local: datetime, zone: str) -> tuple[datetime, ...]:
    """Give the instants at which the clocks of `zone` show a naive time, earliest first.

    One as a rule; two where the clocks are set back over it; none where they are set forward over it.
    """
    first, second = _passes(local, zone)
    if first == second:
        return (first,)
    return (first, second) if first < second else ()


def gap_around(local: datetime, zone: str) -> tuple[datetime, timedelta] | None:
    """Give the end and the length of the gap that skips a naive time; None if the time exists.

    The end is the instant of the clock change. Two changes within one gap's length count as one.
    """
    late, early = _passes(local, zone)
    if late <= early:
        return None
    return _change_between(early, late, zone), late - early


def _is_zone_name(value: object) -> bool:
    return isinstance(value, str) and value in zone_names()


def _shape(value: object) -> re.Match[str] | None:
    return _SHAPE.fullmatch(value) if isinstance(value, str) else None


def _passes(local: datetime, zone: str) -> tuple[datetime, datetime]:
    before, after = (_offset(local.replace(tzinfo=zone_info(zone), fold=fold)) for fold in (0, 1))
    return (local - before).replace(tzinfo=UTC), (local - after).replace(tzinfo=UTC)


def _change_between(early: datetime, late: datetime, zone: str) -> datetime:
    """Find the whole second of the one change after `early` and not after `late`, by halving."""
    start = early.replace(microsecond=0)
    was = offset_at(start, zone)
    unchanged, changed = 0, int((late - start).total_seconds())
    while changed - unchanged > 1:
        middle = (unchanged + changed) // 2
        if offset_at(start + timedelta(seconds=middle), zone) == was:
            unchanged = middle
        else:
            changed = middle
    return start + timedelta(seconds=changed)


def _offset(at: datetime) -> timedelta:
    return at.utcoffset() or timedelta()


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}..."
