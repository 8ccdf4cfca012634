"""One process in the foreground: which rooms there are, and how each is served.

A room is loaded by its name when it is served, so that a process carries its own room and no other.
"""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from types import MappingProxyType
from typing import Final

from shared.process import FAILED, FLUSHED_IN_S, leave
from shared.settings import Settings

STDIN: Final = 0


class Room(StrEnum):
    """A process that can run on its own, any number of times, on any machine."""

    MATCHER = "matcher"
    WORKER = "worker"
    SCHEDULER = "scheduler"
    TIMERS = "timers"
    WATCHDOG = "watchdog"
    API = "api"


SERVES: Final[Mapping[Room, tuple[str, str]]] = MappingProxyType(
    {
        Room.MATCHER: ("matcher.service", "serve"),
        Room.WORKER: ("worker.service", "serve"),
        Room.SCHEDULER: ("worker.service", "serve_scheduler"),
        Room.TIMERS: ("timers.service", "serve"),
        Room.WATCHDOG: ("watchdog.service", "serve"),
        Room.API: ("api.service", "serve"),
    }
)


def serve_room(room: Room, settings: Settings) -> int:
    """Serve a room until the process is asked to end; give its exit code."""
    module, function = SERVES[room]
    serve: Callable[[Settings], int] = getattr(import_module(module), function)
    return serve(settings)


def tie_to_parent(grace_s: float) -> None:
    """End this process once its standard input ends, which is when the process that started it is gone."""
    threading.Thread(target=_await_end_of_parent, args=(grace_s,), name="parent", daemon=True).start()


def _await_end_of_parent(grace_s: float) -> None:
    while os.read(STDIN, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(grace_s + FLUSHED_IN_S)
    leave(FAILED)
