"""The command as a process of its own, in a folder of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import psutil

from knockon.__main__ import main
from knockon.embedded import find_redis
from tests.system.fleet import FORKS, become
from tests.waiting import poll

COMMAND = (sys.executable, "-P", "-m", "knockon")
OURS = ("REDIS_URL", "DATABASE_URL", "KNOCKON_", "WEBHOOK_", "LOG_", "RUN_", "WATCHDOG_", "HANDLE_", "API_")


class Home:
    """A folder in which commands run, with the settings that they find there and no others."""

    def __init__(self, folder: Path, settings: Mapping[str, str], program: Path | None = None) -> None:
        """Make the folder; `program` is an installed command, in place of the one of this checkout."""
        self.folder = folder
        self._program = program
        folder.mkdir(exist_ok=True)
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(OURS)
        } | {"API_PORT": "0", **settings}

    def run(self, *arguments: str, code: int = 0, timeout_s: float = 60) -> str:
        """Run a command to its end and give what it printed; it must end with `code`."""
        log = self.folder / f"{arguments[0]}.said"
        log.write_bytes(b"")
        found = (self._forked if self._program is None else self._spawned)(arguments, log, timeout_s)
        said = log.read_text()
        assert found == code, said
        return said

    def ask(self, *arguments: str) -> Any:
        """Run a command with `-o json` and give what it answers."""
        return orjson.loads(self.run(*arguments, "-o", "json"))

    def _forked(self, arguments: Sequence[str], log: Path, timeout_s: float) -> int | None:
        """Run the command of this checkout in a fork, which spares it most of its start."""
        told = (main, arguments, self.environment, self.folder, log)
        child = FORKS.Process(target=become, args=told, daemon=True)
        child.start()
        child.join(timeout_s)
        code = child.exitcode
        child.kill()
        return code

    def _spawned(self, arguments: Sequence[str], log: Path, timeout_s: float) -> int:
        with log.open("w") as out:
            return subprocess.run(
                [*self._command(), *arguments],
                cwd=self.folder,
                env=self.environment,
                stdout=out,
                stderr=out,
                timeout=timeout_s,
                check=False,
            ).returncode

    def _command(self) -> Sequence[str]:
        return COMMAND if self._program is None else (str(self._program),)

    @contextmanager
    def started(self, *arguments: str) -> Iterator["Started"]:
        """Start a command; it is killed at the end of the block with all that it started."""
        log = self.folder / f"{arguments[0]}.log"
        with log.open("w") as out:
            process = psutil.Popen(
                [*self._command(), *arguments], cwd=self.folder, env=self.environment, stdout=out, stderr=out
            )
        try:
            yield Started(process, log)
        finally:
            for each in [*process.children(recursive=True), process] if process.is_running() else []:
                each.kill()
            process.wait()
            if arguments[0] == "up" and (redis := find_redis(self.folder / ".knockon")):
                redis.stop()


class Started:
    """A command that runs."""

    def __init__(self, process: psutil.Popen, log: Path) -> None:
        """Keep the process and the file that it prints to."""
        self.process = process
        self.log = log

    def said(self) -> str:
        """Give what it printed up to now."""
        return self.log.read_text()

    def await_line(self, text: str, timeout_s: float = 60) -> None:
        """Wait until it has printed `text`."""
        poll(lambda: text in self.said(), timeout_s)

    def rooms(self) -> dict[str, psutil.Process]:
        """Give its processes by the room that they run."""
        found = {}
        for child in self.process.children():
            with suppress(psutil.NoSuchProcess):  # it ended since, and may not be waited for yet
                line = child.cmdline()
                if "run" in line:
                    found[line[line.index("run") + 1]] = child
        return found
