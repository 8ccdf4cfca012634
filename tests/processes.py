"""One room as a process of its own, started and ended by a test."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVE = (
    "from {room}.service import serve\n"
    "from shared.logs import configure_logs\n"
    "from shared.process import leave\n"
    "from shared.settings import load_settings\n"
    "settings = load_settings()\n"
    "configure_logs(settings)\n"
    "leave(serve(settings))\n"
)


@contextmanager
def started(room: str, log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start `room` with these variables, its log in a file; whatever is left of it is killed at the end."""
    variables = {**os.environ, "LOG_FORMAT": "json", "LOG_LEVEL": "debug", **environment}
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE.format(room=room)], cwd=ROOT, env=variables, stderr=out, stdout=out
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def end(process: subprocess.Popen[bytes], timeout_s: float = 30) -> int:
    """Ask a process to end and give its exit code."""
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout_s)
