"""What `knockon doctor` says about where the database lives, and what the machine gives our processes."""

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from knockon.findings import Finding, Level
from shared.db.engine import Database
from shared.db.server_facts import ServerFacts, server_facts

OLDEST_POSTGRES: Final = 13
CONNECTIONS_NEEDED: Final = 50
FILES_NEEDED: Final = 1024
MOUNTS: Final = Path("/proc/mounts")
NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs"}
)


def examine_server(database: Database, file: Path | None) -> Iterator[Finding]:
    """Look at the server, or at the file system that the database's file lies on."""
    with database.read() as conn:
        facts = server_facts(conn)
    if facts is not None:
        yield _postgres(facts)
    elif file is not None:
        yield _file_system(file, MOUNTS)


def open_files() -> Finding:
    """Look at how many files and connections one process may have open, on this machine and for this user."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return Finding(Level.OK, "open files", "without limit")
    if limit < FILES_NEEDED:
        text = f"at most {limit}: connections will be refused under load"
        return Finding(
            Level.WARN, "open files", text, f"ulimit -n {FILES_NEEDED}, or LimitNOFILE= in the unit"
        )
    return Finding(Level.OK, "open files", f"at most {limit}")


def _postgres(facts: ServerFacts) -> Finding:
    about = f"PostgreSQL {facts.version}"
    if facts.version < OLDEST_POSTGRES:
        fix = f"use PostgreSQL {OLDEST_POSTGRES} or later"
        return Finding(Level.FAIL, "sql server", about, fix)
    if facts.is_standby:
        text = f"{about} is a standby, and takes no writes"
        return Finding(Level.FAIL, "sql server", text, "let DATABASE_URL lead to the primary")
    if facts.encoding != "UTF8":
        text = f"{about} stores texts as {facts.encoding}: others than its own are refused"
        return Finding(Level.FAIL, "sql server", text, "make the database with ENCODING 'UTF8'")
    if facts.zone not in ("UTC", "Etc/UTC"):
        text = f"{about}: our connections are in {facts.zone}, so a pooler drops their options"
        return Finding(Level.WARN, "sql server", text, "let the pooler pass startup options, or go around it")
    if facts.connections < CONNECTIONS_NEEDED:
        text = f"{about} takes {facts.connections} connections: one set of processes may need more"
        return Finding(Level.WARN, "sql server", text, "raise max_connections")
    return Finding(Level.OK, "sql server", f"{about}, UTF8, {facts.connections} connections")


def _file_system(file: Path, mounts: Path) -> Finding:
    """Look the file's mount up, where the machine tells."""
    found = _mounted_as(file, mounts)
    if found is None:
        return Finding(Level.OK, "sql server", "SQLite")
    if found in NETWORK:
        text = f"{file} lies on {found}: its locks do not hold between machines"
        return Finding(Level.FAIL, "sql server", text, "move it to a local disk, or use PostgreSQL")
    return Finding(Level.OK, "sql server", f"SQLite, on {found}")


def _mounted_as(file: Path, mounts: Path) -> str | None:
    """Name the kind of the file system that has the longest mount point above the file."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    entries = [fields for line in lines if len(fields := line.split()) > 2]
    above = [(Path(point), kind) for _, point, kind, *_ in entries if file.resolve().is_relative_to(point)]
    return max(above, key=lambda found: len(found[0].parts), default=(None, None))[1]
