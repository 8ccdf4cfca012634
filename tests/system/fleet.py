"""Real processes of the engine, for tests that kill, freeze and end them.

Each is `knockon run ROOM` in a process of its own. Most are forked from a server that has imported the rooms
already, which starts them in milliseconds; `spawn` starts one with the whole command.
"""

import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import shared.faults
from knockon.__main__ import main
from knockon.cli.app import MODULES
from tests.waiting import poll

QUICK: Mapping[str, Any] = {
    "RUN_LEASE_S": 2,
    "LEASE_RENEW_S": 0.5,
    "WATCHDOG_LEASES_S": 0.5,
    "WATCHDOG_HANDLES_S": 0.5,
    "HANDLE_LOST_S": 1,
    "CLAIM_IDLE_S": 1,
    "SHUTDOWN_GRACE_S": 5,
    "WEBHOOK_ALLOW_PRIVATE": "true",
    "LOG_FORMAT": "json",
    "LOG_LEVEL": "info",
}
# Bytecode may be written whatever this test's own process does: it makes starts quick.
NOT_INHERITED = ("PYTHONDONTWRITEBYTECODE", "KNOCKON_FAULT", "PYTHONPATH")
TAIL_LINES = 40

FORKS = multiprocessing.get_context("forkserver")
COMMANDS = {f"knockon.cli.{module}" for module in MODULES.values()}
FORKS.set_forkserver_preload(
    [*sorted(COMMANDS), "matcher.service", "worker.service", "timers.service", "api.service", __name__]
)


@dataclass(frozen=True)
class Process:
    """One process, and the file that it logs to."""

    name: str
    log: Path
    child: BaseProcess | subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        assert self.child.pid is not None
        return self.child.pid

    def kill9(self) -> None:
        """Kill it at once, and wait until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def is_frozen(self) -> bool:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def ask_to_end(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def is_alive(self) -> bool:
        return self._code() is None

    def wait(self, timeout_s: float = 20.0) -> int:
        """Wait for the end and give the exit code, or the signal with a minus."""
        poll(lambda: not self.is_alive(), timeout_s)
        code = self._code()
        assert code is not None
        return code

    def lines(self) -> list[dict[str, Any]]:
        """Read its log; what is not a line of ours, such as a traceback, is left out."""
        written = self.log.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in written if line.startswith("{") and line.endswith("}")]

    def has_logged(self, event: str) -> bool:
        return any(line.get("event") == event for line in self.lines())

    def _code(self) -> int | None:
        if isinstance(self.child, subprocess.Popen):
            return self.child.poll()
        self.child.join(0)
        return self.child.exitcode


class Fleet:
    """The processes of one test. As a context manager it ends them all and shows what they logged last."""

    def __init__(self, redis_url: str, database_url: str, folder: Path, **settings: Any) -> None:
        """Start nothing yet. `settings` are variables in place of the quick ones here."""
        self._folder = folder
        self._variables = {
            **{name: value for name, value in os.environ.items() if name not in NOT_INHERITED},
            **{name: str(value) for name, value in {**QUICK, **settings}.items()},
            "REDIS_URL": redis_url,
            "DATABASE_URL": database_url,
        }
        self._processes: list[Process] = []

    def start(self, room: str, fault: str = "", **settings: Any) -> Process:
        """Fork a process; `fault` arms kill points as KNOCKON_FAULT does."""
        return self.start_as(main, room, fault, **settings)

    def start_as(self, serve: Callable[[], None], room: str, fault: str = "", **settings: Any) -> Process:
        """Fork a process that calls a function of a module in place of the command."""
        name, log, variables = self._prepare(room, fault, settings)
        told = (serve, ("run", room), variables, self._folder, log)
        child = FORKS.Process(target=become, args=told, daemon=True)
        child.start()
        return self._add(Process(name, log, child))

    def spawn(self, room: str, **settings: Any) -> Process:
        """Start a process as people do, with the whole command."""
        name, log, variables = self._prepare(room, "", settings)
        command = [sys.executable, "-P", "-m", "knockon", "run", room]
        with log.open("wb") as out:
            child = subprocess.Popen(
                command,
                env=variables,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        return self._add(Process(name, log, child))

    def end(self) -> None:
        """Kill what still runs, with its children; none survives the test."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                if process.is_alive():
                    os.kill(process.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.wait()

    def show(self) -> None:
        """Write the last lines of each log out; pytest shows them where a test failed."""
        for process in self._processes:
            sys.stdout.write(f"--- {process.name}, exit code {process.wait()}\n")
            for line in process.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]:
                sys.stdout.write(f"{line[:1000]}\n")

    def _add(self, process: Process) -> Process:
        self._processes.append(process)
        return process

    def _prepare(
        self, room: str, fault: str, settings: Mapping[str, Any]
    ) -> tuple[str, Path, dict[str, str]]:
        name = f"{room}-{len(self._processes) + 1}"
        variables = {**self._variables, **{key: str(value) for key, value in settings.items()}}
        if fault:
            variables[shared.faults.VARIABLE] = fault
        log = self._folder / f"{name}.log"
        log.touch()
        return name, log, variables


@contextmanager
def open_fleet(redis_url: str, database_url: str, folder: Path, **settings: Any) -> Iterator[Fleet]:
    """Give a fleet whose processes are gone afterwards."""
    fleet = Fleet(redis_url, database_url, folder, **settings)
    try:
        yield fleet
    finally:
        fleet.end()
        fleet.show()


def become(
    serve: Callable[[], None], arguments: Sequence[str], variables: Mapping[str, str], folder: Path, log: Path
) -> None:
    """Turn the process that was just forked into the command with these arguments and variables."""
    os.setsid()  # children of its own end with it when the test does
    with log.open("ab") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    importlib.reload(shared.faults)  # it reads its variable when it is imported
    sys.argv = ["knockon", *arguments]
    serve()
