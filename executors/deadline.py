"""The instant by which an action has to end, on the clock that never steps back."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Self

from shared.errors import FatalError
from shared.time.clock import Clock

ACTION_TIMEOUT: Final = "ACTION_TIMEOUT"


@dataclass(frozen=True, slots=True)
class Deadline:
    """A fixed instant: `at` is a reading of `clock.monotonic()`, in seconds."""

    clock: Clock
    at: float

    @classmethod
    def after(cls, clock: Clock, timeout: timedelta) -> Self:
        """Start a stretch of `timeout` now."""
        return cls(clock, clock.monotonic() + timeout.total_seconds())

    def remaining_s(self) -> float:
        """Give the seconds that are left; 0.0 once passed."""
        return max(0.0, self.at - self.clock.monotonic())

    def is_passed(self) -> bool:
        """Tell whether nothing is left."""
        return self.clock.monotonic() >= self.at

    def check(self) -> None:
        """Raise FatalError ACTION_TIMEOUT once passed."""
        if self.is_passed():
            raise FatalError(ACTION_TIMEOUT, "the action did not end within its time")
