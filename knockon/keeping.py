"""What one `up` holds: the data folder, for itself alone, and the private Redis in it, kept alive."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from knockon.embedded import restart_redis, start_redis
from knockon.supervisor import Say
from shared.errors import ConfigError
from shared.folders import make_private
from shared.time.clock import Clock

LOCK_FILE: Final = "up.lock"
LOOKS: Final = 5
LOOK_S: Final = 0.1
MOST_ENDS: Final = 5
HEALTHY_S: Final = 60.0
NAME: Final = "redis"


class RedisKeeper:
    """The private Redis of one `up`, started again whenever it has ended, with its address and its data."""

    def __init__(self, data_dir: Path, clock: Clock, say: Say) -> None:
        """Start it, or take the one that runs. Raises ConfigError if it stays down."""
        self._server = start_redis(data_dir)
        self._clock = clock
        self._say = say
        self._started_s = clock.monotonic()
        self._ends = 0

    @property
    def url(self) -> str:
        """Name it, as long as it is kept."""
        return self._server.url

    def tend(self) -> None:
        """Start it again if it has ended. Raises ConfigError, which was said, where that does not help."""
        if self._server.is_alive():
            return
        if self._clock.monotonic() - self._started_s > HEALTHY_S:
            self._ends = 0
        self._ends += 1
        self._say(NAME, "has ended; it is started again on its data")
        try:
            self._start_again()
        except ConfigError as error:
            self._say(NAME, f"cannot be kept running: {error}")
            raise
        self._say(NAME, "runs again")

    def stop(self) -> None:
        """End it, its data on disk."""
        self._server.stop()

    def _start_again(self) -> None:
        if self._ends > MOST_ENDS:
            raise ConfigError(
                f"redis-server ended {self._ends} times within minutes; see {self._server.home}/redis.log"
            )
        self._server = restart_redis(self._server)
        self._started_s = self._clock.monotonic()


@contextmanager
def only_one(data_dir: Path) -> Iterator[None]:
    """Hold the data folder for one `up`. Raises ConfigError while another process does."""
    make_private(data_dir)
    pause = threading.Event()
    with (data_dir / LOCK_FILE).open("a") as handle:
        looks = 1
        while not _is_taken(handle):
            if looks == LOOKS:
                raise ConfigError(
                    f"knockon up runs in {data_dir} already; "
                    "stop it, or set KNOCKON_DATA_DIR to another folder"
                )
            looks += 1
            pause.wait(LOOK_S)  # whoever only looks whether an `up` runs lets go at once
        os.utime(handle.fileno())  # which `up_since` reads
        yield


def _is_taken(handle: IO[str]) -> bool:
    """Take the lock of a file for this process; False while another one has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_up(data_dir: Path) -> bool:
    """Tell whether an `up` holds this data folder. Nothing is made."""
    try:
        with (data_dir / LOCK_FILE).open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def up_since(data_dir: Path) -> datetime | None:
    """Give when the `up` that holds this data folder took it; None if none does. Nothing is made."""
    if not is_up(data_dir):
        return None
    return datetime.fromtimestamp((data_dir / LOCK_FILE).stat().st_mtime, UTC)
