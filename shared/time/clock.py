"""The clock: the only module that reads it. Everything else is handed a `Clock` or a `now`."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What time it is: `now` for instants that are stored, `monotonic` for measuring stretches."""

    def now(self) -> datetime:
        """Give the present instant, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Give seconds on a clock that never steps back."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Give the present instant, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Give seconds on a clock that never steps back."""
        return time.monotonic()


class ManualClock:
    """A clock that moves only when told to, for tests and simulations."""

    def __init__(self, start: datetime) -> None:
        """Start at `start`, which must be aware."""
        self._now = start.astimezone(UTC)
        self._monotonic = 0.0

    def now(self) -> datetime:
        """Give the instant it was last moved to."""
        return self._now

    def monotonic(self) -> float:
        """Give the seconds it was advanced by in all."""
        return self._monotonic

    def advance(self, by: timedelta) -> None:
        """Move both readings forward."""
        self._now += by
        self._monotonic += by.total_seconds()


def epoch_ms(at: datetime) -> int:
    """Give an instant as whole milliseconds since the epoch, as stream entry ids count them."""
    return int(at.timestamp() * 1000)


def from_epoch_ms(value: int) -> datetime:
    """Give the instant of whole milliseconds since the epoch. Raises ValueError outside years 1 to 9999."""
    try:
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=value)
    except OverflowError as error:
        raise ValueError(f"{value} ms is outside the calendar") from error
