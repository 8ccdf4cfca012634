"""When something is due again, and how long to wait after a failure."""

from typing import Final

from shared.logs import get_logger
from shared.process import StopFlag
from shared.time.clock import Clock

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0

log: Final = get_logger("worker")


class Every:
    """Something that is due at once, and then again after each `seconds`."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        """Be due now."""
        self._clock = clock
        self._seconds = seconds
        self._due_at = clock.monotonic()

    def is_due(self) -> bool:
        """Tell whether it is due; if so, the next time is counted from now."""
        now = self._clock.monotonic()
        if now < self._due_at:
            return False
        self._due_at = now + self._seconds
        return True

    def expedite(self) -> None:
        """Be due now."""
        self._due_at = self._clock.monotonic()


class Outage:
    """A server that may be away: the pauses between attempts grow, and a pause ends when the process must."""

    def __init__(self, server: str, stop: StopFlag) -> None:
        """Name the server in the log."""
        self._server = server
        self._stop = stop
        self._pause_s = 0.0

    def endure(self, error: Exception) -> None:
        """Pause after an attempt that failed; the first of a row is logged."""
        if not self._pause_s:
            log.warning("server_lost", server=self._server, error=type(error).__name__, text=str(error)[:200])
        self._pause_s = min(self._pause_s * 2 or FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._stop.wait(self._pause_s)

    def end(self) -> None:
        """Note that an attempt went through."""
        if self._pause_s:
            self._pause_s = 0.0
            log.info("server_found_again", server=self._server)
