"""The programs that are measured: which processes each one is, and what stands in its database first."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

import psutil

from benchmarks import plain_rq
from benchmarks.scenario import TWO_HUNDRED, Mix, store
from benchmarks.sites import Backend, Site
from shared.db.engine import open_database

ROOT: Final = Path(__file__).resolve().parents[1]
END_S: Final = 60
LOG_TAIL: Final = 5


@dataclass(frozen=True, slots=True)
class Contender:
    """A program: its processes by name, each as the arguments of the Python that runs it."""

    name: str
    backend: Backend
    roles: Mapping[str, Sequence[str]]
    prepare: Callable[[Site], None]

    def only(self, role: str) -> "Contender":
        """Give the program with one of its processes alone."""
        return Contender(self.name, self.backend, {role: self.roles[role]}, self.prepare)


@dataclass(slots=True)
class Running:
    """The processes of a program that was started."""

    folder: Path
    processes: dict[str, psutil.Process] = field(default_factory=dict)

    def cpu_s(self) -> dict[str, float]:
        """Give the processor time that each has used so far."""
        times = {role: process.cpu_times() for role, process in self.processes.items()}
        return {role: spent.user + spent.system for role, spent in times.items()}

    def rss_mib(self) -> dict[str, float]:
        """Give the memory that each holds."""
        return {role: process.memory_info().rss / 2**20 for role, process in self.processes.items()}

    def check(self) -> None:
        """Raise AssertionError with the end of its log if one of them has ended."""
        for role, process in self.processes.items():
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                tail = (self.folder / f"{role}.log").read_text(errors="replace").splitlines()[-LOG_TAIL:]
                raise AssertionError(f"{role} has ended: {' / '.join(tail)}")


def knockon(backend: Backend, mix: Mix = TWO_HUNDRED) -> Contender:
    """Give the engine: one matcher, one worker."""

    def prepare(site: Site) -> None:
        database = open_database(site.database_url)
        store(database, mix)
        database.dispose()

    rooms = {room: ("-P", "-m", "knockon", "run", room) for room in ("matcher", "worker")}
    return Contender(f"knockon, {backend}", backend, MappingProxyType(rooms), prepare)


def plain() -> Contender:
    """Give the plain program: one consumer, one RQ worker, on PostgreSQL."""
    roles = {role: ("-m", "benchmarks.plain_rq", role) for role in ("consumer", "rq-worker")}
    return Contender("plain RQ, PostgreSQL", Backend.POSTGRES, MappingProxyType(roles), plain_rq.prepare)


@contextmanager
def running(contender: Contender, site: Site) -> Iterator[Running]:
    """Start the processes; they are asked to end afterwards, and have to."""
    variables = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": str(ROOT),
        "REDIS_URL": site.redis_url,
        "DATABASE_URL": site.database_url,
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "warning",
    }
    started = Running(site.folder)
    with ExitStack() as stack:
        for role, arguments in contender.roles.items():
            log = stack.enter_context((site.folder / f"{role}.log").open("ab"))
            process = subprocess.Popen(
                [sys.executable, *arguments], cwd=site.folder, env=variables, stdout=log, stderr=log
            )
            stack.callback(_end, process)
            started.processes[role] = psutil.Process(process.pid)
        yield started


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
