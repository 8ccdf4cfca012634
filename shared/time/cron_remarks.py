"""What a person should know about one fire of a schedule: that a clock change moved or repeated its time."""

from datetime import UTC, datetime, timedelta
from typing import Final

from shared.time.cron import next_fires
from shared.time.cron_grammar import parse_cron
from shared.time.wallclock import offset_at, readings, to_local

_TICK: Final = timedelta(microseconds=1)


def remark_on(expr: str, zone: str, fire: datetime) -> str | None:
    """Say what a clock change of `zone` does to a fire of `expr`, or None where it does nothing.

    Raises ValueError as `next_fires` does.
    """
    local = to_local(fire, zone)
    passes = readings(local, zone)
    if len(passes) > 1:
        which = "first" if fire == passes[0] else "second"
        return f"{local:%H:%M} comes twice on {local:%Y-%m-%d}, this is the {which} time"
    skipped = _skipped(expr, zone, fire)
    return None if skipped is None else f"{skipped:%H:%M} does not exist on {skipped:%Y-%m-%d}"


def _skipped(expr: str, zone: str, fire: datetime) -> datetime | None:
    """Give the first time that `expr` names in the gap that `fire` ends; None if none is made up for."""
    fields = parse_cron(expr)
    gap = offset_at(fire, zone) - offset_at(fire - _TICK, zone)
    if gap <= timedelta() or fields.minute.starred or fields.hour.starred:
        return None
    end = to_local(fire, zone).replace(tzinfo=UTC)
    named = next_fires(expr, "UTC", end - gap - _TICK, 1)
    return named[0] if named and named[0] < end else None
