"""Fixtures for all tests: real servers, a database and a Redis of its own for each test that asks."""

import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog
from hypothesis import settings
from psycopg import sql
from redis import Redis

from knockon.embedded import find_redis, start_redis
from shared.db.migrating import migrate
from tests.lending import Lender
from tests.servers import Postgres, locked, start_postgres

FOLDER_VARIABLE = "KNOCKON_TEST_SERVERS"
REDIS_DATABASES = 4096
WORKERS_MIN = 8
TEMPLATE = "template_knockon"
BACKENDS = ("sqlite", "postgres")


def pytest_xdist_auto_num_workers() -> int:
    """Have two processes a core where there are few cores: half of the time a test waits for others."""
    cores = os.cpu_count() or 1
    return max(cores, min(2 * cores, WORKERS_MIN))


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder that all processes of this session share; only the first process owns it."""
    log_as_a_process()
    heed_signals()
    settings.register_profile("steady", deadline=None, derandomize="CI" in os.environ)
    settings.load_profile("steady")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # it makes every start of a process several times as slow
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="knockon-tests-")
        Path(folder).chmod(0o711)
        os.environ[FOLDER_VARIABLE] = folder


def heed_signals() -> None:
    """Heed what a shell or `nohup` has processes in the background ignore: their children inherit it."""
    if threading.current_thread() is threading.main_thread():
        for asked, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
            if signal.getsignal(asked) is signal.SIG_IGN:
                signal.signal(asked, usual)


def log_as_a_process() -> None:
    """Log as a process does by default: the tracebacks of debug lines would cost more than the tests."""
    structlog.reset_defaults()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what was started and remove the folder, once the last process is done."""
    if not hasattr(config, "workerinput"):
        folder = Path(os.environ.pop(FOLDER_VARIABLE))
        Postgres(folder / "postgres").stop()
        if running := find_redis(folder):
            running.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session", autouse=True)
def logs_are_looked_up() -> Iterator[None]:
    """Let no logger keep the set-up of its first line: it would go on with it when that is undone."""
    configure = structlog.configure

    def configure_uncached(**given: Any) -> None:
        configure(**{**given, "cache_logger_on_first_use": False})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", configure_uncached)
        yield


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Undo what a command that ran inside this process made of the logs: later tests would hear nothing."""
    yield
    log_as_a_process()


@pytest.fixture(scope="session")
def servers_folder() -> Path:
    """Give the folder where this session's servers live."""
    return Path(os.environ[FOLDER_VARIABLE])


@pytest.fixture(scope="session")
def redis_server(servers_folder: Path) -> str:
    """Give the address of a real Redis, shared by the session."""
    return start_redis(servers_folder, REDIS_DATABASES).url


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """Give the address of an empty database of the session's Redis that no other test uses."""
    with closing(Redis.from_url(redis_server)) as client:
        number = int(client.incr("databases_given")) % REDIS_DATABASES or 1
    url = redis_server.replace("db=0", f"db={number}")
    with closing(Redis.from_url(url)) as client:
        client.flushdb()
    return url


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[Redis]:
    """Give a client of this test's Redis database."""
    with closing(Redis.from_url(redis_url)) as client:
        yield client


@pytest.fixture(scope="session")
def postgres_server(servers_folder: Path) -> Postgres:
    """Give a real PostgreSQL, shared by the session, with a migrated template database."""
    with locked(servers_folder):
        server = start_postgres(servers_folder / "postgres")
        with psycopg.connect(server.url(), autocommit=True) as conn:
            made = conn.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE]).fetchone()
            if not made:
                conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(f"{TEMPLATE}_new")))
                migrate(server.url(f"{TEMPLATE}_new"))
                names = map(sql.Identifier, (f"{TEMPLATE}_new", TEMPLATE))
                conn.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*names))
    return server


@pytest.fixture(scope="session")
def postgres_lender(postgres_server: Postgres) -> Lender:
    """Give what lends migrated databases to the tests of this process."""
    return Lender(postgres_server, TEMPLATE)


@pytest.fixture
def postgres_url(postgres_lender: Lender) -> Iterator[str]:
    """Give the address of a migrated PostgreSQL database of this test's own."""
    name = postgres_lender.lend()
    yield postgres_lender.server.url(name)
    postgres_lender.take_back(name)


@pytest.fixture(scope="session")
def sqlite_template(servers_folder: Path) -> Path:
    """Give a migrated SQLite file that tests copy."""
    path = servers_folder / "template.db"
    with locked(servers_folder):
        if not path.exists():
            fresh = servers_folder / "template-new.db"
            migrate(f"sqlite:///{fresh}")
            fresh.rename(path)
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """Give the address of a migrated SQLite file of this test's own."""
    path = tmp_path / "knockon.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the address of a migrated database of this test's own, once for each kind we run on."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url
