"""What every process of ours shares: a name, a flag that signals raise, an end without delay."""

import os
import signal
import socket
import sys
import threading
from types import FrameType
from typing import Final, NoReturn

from shared.ids import new_id

FAILED: Final = 1
INTERRUPTED: Final = 130  # as a shell has it: 128 and SIGINT
PIPE_CLOSED: Final = 141  # likewise 128 and SIGPIPE

# Once its grace time is over, a process that was asked to end has written what it holds in less than this.
FLUSHED_IN_S: Final = 35.0


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
        """Raise the flag on SIGTERM, SIGINT and SIGHUP from now on. Call it in the main thread.

        A SIGHUP that the process was started to ignore, as `nohup` does, stays ignored.
        """

        def asked(_signum: int, _frame: FrameType | None) -> None:
            self.raise_()

        signal.signal(signal.SIGTERM, asked)
        signal.signal(signal.SIGINT, asked)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, asked)


def make_owner() -> str:
    """Name this process on rows, locks and lists: host, process id, and chance, since ids come again."""
    return f"{socket.gethostname()}-{os.getpid()}-{new_id()}"


def leave(code: int) -> NoReturn:
    """End the process now, whatever threads still do; what was printed is flushed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
