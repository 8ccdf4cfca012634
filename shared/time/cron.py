"""When a cron expression fires in a zone. The preview of a schedule and its firing both ask here.

Clock changes follow Vixie cron. A time is fixed unless the minute or the hour field begins with `*`. A fixed
time that a change skips fires once at the end of the gap, and one that comes twice fires at the first pass;
other times follow the clock as it reads, so they are not made up and fire in both passes. A gap of three
hours or more is no clock change but a lost day, and nothing is made up for it.
"""

import heapq
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from croniter import croniter

from shared.time.cron_grammar import CronFields, Field, parse_cron
from shared.time.wallclock import check_zone, gap_around, offset_at, readings, to_local

_SET_BACK_MAX: Final = timedelta(hours=26)
_LOST_DAY: Final = timedelta(hours=3)
_ANY_START: Final = datetime.fromisoformat("2000-01-01T00:00:00")


@dataclass(frozen=True, slots=True)
class _Plan:
    """An expression made ready: croniter texts that fire together, each with both day fields to be met."""

    texts: tuple[str, ...]
    follows_clock: bool


def cron_check(expr: str) -> None:
    """Raise ValueError unless `expr` is in the grammar, fires at least once, and at most once a minute.

    Two fires are closer than 60 s exactly when the seconds field has more than one value.
    """
    if next(_local_times(_plan(expr), _ANY_START), None) is None:
        raise ValueError(f"{expr.strip()!r} never fires: no month has such a day")


def next_fires(expr: str, zone: str, after: datetime, count: int) -> list[datetime]:
    """Give the first `count` instants (UTC) strictly after the aware instant `after` at which `expr` fires.

    Fewer if the calendar ends first. Raises ValueError for an expression that `cron_check` refuses for its
    grammar or its interval, an unknown zone, a naive `after`.
    """
    check_zone(zone)
    if after.tzinfo is None:
        raise ValueError("`after` must be an aware datetime")
    plan = _plan(expr)
    fires: list[datetime] = []
    for local in _local_times(plan, _first_local(after, zone)):
        instants = _instants(local, zone, plan)
        if len(fires) >= count and instants and instants[0] >= fires[count - 1]:
            break
        for instant in instants:
            if instant > after and instant not in fires:
                insort(fires, instant)
    return fires[:count]


@lru_cache(maxsize=4096)
def _plan(expr: str) -> _Plan:
    fields = parse_cron(expr)
    if len(fields.second.values) > 1:
        raise ValueError("fires more than once a minute: the seconds field takes exactly one value")
    follows_clock = fields.minute.starred or fields.hour.starred
    texts = tuple(_croniter_text(fields, day, weekday) for day, weekday in _day_pairs(fields))
    return _Plan(texts, follows_clock)


def _day_pairs(fields: CronFields) -> list[tuple[str, str]]:
    """Split the day fields into pairs that are each met together, any pair being enough.

    Both restricted: either one is enough. One begins with `*`: both have to be met.
    """
    day = _day_text(fields.day)
    weekdays = _weekday_texts(fields.weekday)
    if fields.day.starred or fields.weekday.starred:
        return [(day, weekday) for weekday in weekdays]
    return [(day, "*"), *(("*", weekday) for weekday in weekdays)]


def _day_text(field: Field) -> str:
    text = _values_text(field)
    if not field.has_last or field.is_full:
        return text
    return f"{text},L" if text else "L"


def _weekday_texts(field: Field) -> list[str]:
    nths = ",".join(f"{day}#{nth}" for day, nth in sorted(field.nths))
    return [text for text in (_values_text(field), nths) if text]


def _values_text(field: Field) -> str:
    return "*" if field.is_full else ",".join(map(str, sorted(field.values)))


def _croniter_text(fields: CronFields, day: str, weekday: str) -> str:
    second, minute, hour, month = map(_values_text, (fields.second, fields.minute, fields.hour, fields.month))
    return f"{second} {minute} {hour} {day} {month} {weekday}"


def _local_times(plan: _Plan, after: datetime) -> Iterator[datetime]:
    """Walk the naive local times of a plan after `after`, in order, each once, to the end of the calendar."""
    previous = None
    for local in heapq.merge(*(_text_times(text, after) for text in plan.texts)):
        if local != previous:
            yield local
        previous = local


def _text_times(text: str, after: datetime) -> Iterator[datetime]:
    times = croniter(text, after.replace(tzinfo=UTC), day_or=False, second_at_beginning=True)
    while True:
        try:
            found: datetime = times.get_next(datetime)
        except (OverflowError, ValueError):  # no such day within 50 years, or past year 9999
            return
        yield found.replace(tzinfo=None)


def _first_local(after: datetime, zone: str) -> datetime:
    """Give a local time that no later fire's local time comes before: earlier only around a clock change."""
    local = to_local(after, zone).replace(microsecond=0)
    shifts = (-_SET_BACK_MAX, timedelta(), _SET_BACK_MAX)
    around = [offset_at(after + shift, zone) for shift in shifts]
    return local - (max(around) - min(around))


def _instants(local: datetime, zone: str, plan: _Plan) -> tuple[datetime, ...]:
    instants = readings(local, zone)
    if instants:
        return instants if plan.follows_clock else instants[:1]
    gap = gap_around(local, zone)
    if gap is None or plan.follows_clock or gap[1] >= _LOST_DAY:
        return ()
    return (gap[0],)
