"""How a test waits: for a condition, against a deadline, and never for luck."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def poll(predicate: Callable[[], T], timeout_s: float = 10.0, every_s: float = 0.02) -> T:
    """Ask `predicate` until it answers something true, and give that answer.

    Raises AssertionError when the time is over, with the last answer.
    """
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not (answer := predicate()):
        assert time.monotonic() < deadline, f"not in {timeout_s} s; the last answer was {answer!r}"
        pause.wait(every_s)
    return answer
