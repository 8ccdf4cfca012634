"""What the loops of watchdog and timers share: duties with periods, and one word for each outage."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from shared.logs import get_logger


@dataclass(slots=True)
class Duty:
    """One thing to do, how often, and when next on the monotonic clock."""

    name: str
    every_s: float
    work: Callable[[], None]
    due: float


class Outages:
    """Tells once that a server went away, and once that it is back."""

    def __init__(self, room: str) -> None:
        """Speak as `room`; nothing is away yet."""
        self._log: Final[Any] = get_logger(room)
        self._is_away = False

    def note(self, error: Exception) -> None:
        """Say once that a server is away; the loop goes on trying."""
        if not self._is_away:
            self._log.warning("outage_began", error=type(error).__name__)
        self._is_away = True

    def end(self) -> None:
        """Say that what was away is back, if anything was."""
        if self._is_away:
            self._log.info("outage_ended")
        self._is_away = False
