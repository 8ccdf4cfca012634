"""What every process of ours shares.

A flag that SIGTERM and SIGINT raise, and an end that nothing can hold up.
"""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Final, NoReturn

FAILED: Final = 1


class StopFlag:
    """Whether the process was asked to end. Signal handlers only raise the flag; loops look at it."""

    def __init__(self) -> None:
        """Start lowered."""
        self._event = threading.Event()

    def raise_(self) -> None:
        """Ask for the end. A second call changes nothing."""
        self._event.set()

    def is_raised(self) -> bool:
        """Tell whether the end was asked for."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Sleep until the end is asked for or the time is over; tell whether it was asked for."""
        return self._event.wait(timeout_s)

    def listen(self) -> None:
        """Raise the flag on SIGTERM and SIGINT from now on. Call it in the main thread."""

        def asked(_signum: int, _frame: FrameType | None) -> None:
            self.raise_()

        signal.signal(signal.SIGTERM, asked)
        signal.signal(signal.SIGINT, asked)


def leave(code: int) -> NoReturn:
    """End the process now, whatever threads still do; what was printed is flushed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
