"""How long an automation waits before it acts, in words (docs/delayed.md). Pure."""

from collections.abc import Mapping
from typing import Any, Final

HOUR: Final = 60
DAY: Final = 24 * HOUR


def show_delay(minutes: int) -> str:
    """Write minutes as `4h`, `90m` or `2d 4h`: in a larger unit from two of it on, or for exactly one."""
    days, rest = divmod(minutes, DAY) if minutes == DAY or minutes >= 2 * DAY else (0, minutes)
    hours, rest = divmod(rest, HOUR) if days or rest == HOUR or rest >= 2 * HOUR else (0, rest)
    parts = ((days, "d"), (hours, "h"), (rest, "m"))
    return " ".join(f"{number}{unit}" for number, unit in parts if number)


def show_runs_after(minutes: int | None) -> str | None:
    """Say when an automation runs, as `runs after 4h`; None if it runs at once."""
    return None if minutes is None else f"runs after {show_delay(minutes)}"


def delay_of(definition: Mapping[str, Any]) -> int | None:
    """Give the minutes that a stored definition waits; None if it does not wait."""
    minutes: int | None = definition.get("execution_delay")
    return minutes
