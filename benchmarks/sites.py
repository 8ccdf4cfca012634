"""Servers of our own for measurements: Redis with its append-only file, PostgreSQL that syncs commits."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final
from uuid import uuid4

import psutil
import psycopg
from psycopg import sql
from redis import Redis

from knockon.embedded import RedisProcess, start_redis
from shared.db.migrating import migrate
from tests.servers import Postgres, start_postgres

TEMPLATE: Final = "template_bench"
OLD: Final = "SELECT datname FROM pg_database WHERE datname LIKE 'b\\_%'"
DURABLE: Final = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "4GB",
}


class Backend(StrEnum):
    """Where the rows are."""

    POSTGRES = "PostgreSQL"
    SQLITE = "SQLite"


@dataclass(frozen=True, slots=True)
class Site:
    """An empty Redis and an empty, migrated database; `folder` takes logs."""

    redis_url: str
    database_url: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Servers:
    """What runs for the length of one `python -m benchmarks`."""

    folder: Path
    redis: RedisProcess
    postgres: Postgres

    def fresh(self, backend: Backend) -> Site:
        """Empty Redis and make a database; what was measured before is gone."""
        with closing(Redis.from_url(self.redis.url, socket_timeout=60)) as client:
            client.flushall()
        if backend is Backend.POSTGRES:
            with psycopg.connect(self.postgres.url(), autocommit=True) as conn:
                for (old,) in conn.execute(OLD).fetchall():
                    conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(old)))
        return self.beside(backend)

    def beside(self, backend: Backend) -> Site:
        """Make a database beside those that there are."""
        name = f"b_{uuid4().hex}"
        folder = self.folder / name
        folder.mkdir()
        if backend is Backend.SQLITE:
            shutil.copyfile(self.folder / "template.db", folder / "knockon.db")
            return Site(self.redis.url, f"sqlite:///{folder / 'knockon.db'}", folder)
        made = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*map(sql.Identifier, (name, TEMPLATE)))
        with psycopg.connect(self.postgres.url(), autocommit=True) as conn:
            conn.execute(made)
            conn.execute("CHECKPOINT")
        return Site(self.redis.url, self.postgres.url(name), folder)

    def cpu_s(self, backend: Backend) -> dict[str, float]:
        """Give the processor time that each server used so far, its ended children with it."""
        spent = {"redis": _spent(self.redis.pid)}
        if backend is Backend.POSTGRES:
            spent["postgresql"] = _spent(int(self.postgres.pid_file.read_text().split()[0]))
        return spent

    def versions(self) -> dict[str, str]:
        """Name the servers' versions."""
        with closing(Redis.from_url(self.redis.url)) as client, psycopg.connect(self.postgres.url()) as conn:
            told = conn.execute("SHOW server_version").fetchone()
            assert told is not None
            return {
                "redis": str(client.info("server")["redis_version"]),
                "postgresql": str(told[0]).split()[0],
            }


@contextmanager
def open_servers() -> Iterator[Servers]:
    """Start the servers in a new folder; both and the folder are gone afterwards. TMPDIR chooses the disk."""
    folder = Path(tempfile.mkdtemp(prefix="knockon-bench-"))
    folder.chmod(0o711)
    postgres = Postgres(folder / "postgres")
    redis: RedisProcess | None = None
    try:
        redis = start_redis(folder)
        start_postgres(folder / "postgres", DURABLE)
        _make_templates(postgres, folder)
        yield Servers(folder, redis, postgres)
    finally:
        postgres.stop()
        if redis is not None:
            redis.stop()
        shutil.rmtree(folder)


def _spent(pid: int) -> float:
    process = psutil.Process(pid)
    times = process.cpu_times()
    spent = times.user + times.system + times.children_user + times.children_system
    for child in process.children():
        with suppress(psutil.NoSuchProcess):
            lived = child.cpu_times()
            spent += lived.user + lived.system
    return spent


def _make_templates(postgres: Postgres, folder: Path) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    migrate(postgres.url(TEMPLATE))
    migrate(f"sqlite:///{folder / 'template.db'}")
