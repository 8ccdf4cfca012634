"""Behind the door of the command: it puts the rooms on the path, then hands over to `knockon.cli`.

In an installation the rooms lie inside this package, because names such as `shared` belong to other
distributions too; in a checkout they lie beside it and are on the path already.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Final

ROOMS: Final = Path(__file__).parent / "_app"
INTERRUPTED: Final = 130  # shared.process has it too, which is not loaded yet


def enter() -> None:
    """Run the command with this process's arguments; it ends the process with its exit code."""
    with _quiet_interrupts():
        if ROOMS.is_dir():
            sys.path.insert(0, str(ROOMS))
        command = import_module("knockon.cli.app").load(sys.argv[1:])
    command(sys.argv[1:])


@contextmanager
def _quiet_interrupts() -> Iterator[None]:
    """End the process at Ctrl-C without a word, since all that it has done is to load modules."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    yield
    signal.signal(signal.SIGINT, before)


def _leave(_signum: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
