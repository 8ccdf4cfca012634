"""A small supervisor: starts processes, says what they say, starts again what ended, and stops all in order.

Each child's standard input is a pipe whose other end only the supervisor holds: when the supervisor is gone,
however it went, the child reads its end and ends itself (`knockon run --tied`).
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.process import FLUSHED_IN_S, StopFlag
from shared.time.clock import Clock

POLL_S: Final = 0.1
LONGEST_BACKOFF_S: Final = 30.0
PROMPT_BACKOFF_S: Final = 5.0
PROMPT: Final = frozenset({"api", "timers"})  # what waits for it is late by as long as it is away
HEALTHY_S: Final = 60.0
LAST_WORDS_S: Final = 2.0

Say = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Spec:
    """A process to keep running: its name in what is printed, and the room that it runs."""

    name: str
    room: str

    def command(self) -> list[str]:
        """Give the command line; no module is taken from the working folder."""
        return [sys.executable, "-P", "-m", "knockon", "run", self.room, "--tied"]


@dataclass(slots=True)
class Child:
    """One process and how often it had to be started."""

    spec: Spec
    process: subprocess.Popen[bytes] | None = None
    reader: threading.Thread | None = None
    started_s: float = 0.0
    due_s: float = 0.0
    ends: int = 0


class Supervisor:
    """Keeps the processes of one `up` or `demo` running."""

    def __init__(self, specs: Sequence[Spec], environment: Mapping[str, str], clock: Clock, say: Say) -> None:
        """Start nothing yet. `environment` is added to our own; `say(name, line)` prints."""
        self._children = [Child(spec) for spec in specs]
        self._environment = {**os.environ, **environment, "PYTHONUNBUFFERED": "1"}
        self._clock = clock
        self._say = say

    def run(self, stop: StopFlag, before: Callable[[], None]) -> None:
        """Start what does not run, until the flag is raised; `before` comes first in each round."""
        while True:
            before()
            self.tend()
            if stop.wait(POLL_S):
                return

    def tend(self) -> None:
        """Start every process that does not run and whose wait is over."""
        now_s = self._clock.monotonic()
        for child in self._children:
            if child.process is not None and (code := child.process.poll()) is not None:
                self._note_end(child, code, now_s)
            if child.process is None and child.due_s <= now_s:
                self._start(child, now_s)

    def stop(self, grace_s: float) -> None:
        """End all processes: asked first, killed once the grace time and the time to write are over."""
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            _signal(process, signal.SIGTERM)
        deadline = self._clock.monotonic() + grace_s + FLUSHED_IN_S
        for process in running:
            try:
                process.wait(max(0.0, deadline - self._clock.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()
        for child in self._children:
            _close_stdin(child)
            if child.reader is not None:
                child.reader.join(LAST_WORDS_S)

    def _start(self, child: Child, now_s: float) -> None:
        child.process = subprocess.Popen(
            child.spec.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            process_group=0,
        )
        child.started_s = now_s
        child.reader = threading.Thread(
            target=self._relay, args=(child.spec.name, child.process), daemon=True
        )
        child.reader.start()

    def _note_end(self, child: Child, code: int, now_s: float) -> None:
        if now_s - child.started_s > HEALTHY_S:
            child.ends = 0
        longest_s = PROMPT_BACKOFF_S if child.spec.room in PROMPT else LONGEST_BACKOFF_S
        wait_s = min(2.0**child.ends, longest_s)
        child.ends += 1
        _close_stdin(child)
        child.process = None
        child.due_s = now_s + wait_s
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._say(child.spec.name, f"{how}; it is started again in {wait_s:.0f} s")

    def _relay(self, name: str, process: subprocess.Popen[bytes]) -> None:
        if process.stdout is None:
            return
        with process.stdout as said:
            for line in said:
                self._say(name, line.decode(errors="replace").rstrip("\n"))


def _close_stdin(child: Child) -> None:
    if child.process is not None and child.process.stdin is not None:
        child.process.stdin.close()


def _signal(process: subprocess.Popen[bytes], signum: int) -> None:
    if process.poll() is None:
        process.send_signal(signum)
