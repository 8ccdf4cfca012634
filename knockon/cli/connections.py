"""What a command works with, opened for the length of it: settings, database, Redis."""

import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from knockon.servers import check_database_file, database_url, redis_url
from shared.db.engine import Database, open_database
from shared.keys import Keys
from shared.logs import configure_logs
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from shared.services.backends import Backends, Caller
from shared.settings import LogFormat, LogLevel, Settings, load_settings
from shared.time.clock import SystemClock


def read_settings() -> Settings:
    """Read the settings, and let warnings of the services reach the person. Raises SettingsError."""
    settings = load_settings()
    quiet = {"log_level": _log_level(settings.log_level), "log_format": LogFormat.CONSOLE}
    configure_logs(settings.model_copy(update=quiet), sys.__stderr__)
    return settings


def caller(workspace: str) -> Caller:
    """Say who asks: the user of this shell."""
    return Caller(workspace, f"USER cli:{user_name()}")


@contextmanager
def opened_database() -> Iterator[Database]:
    """Open the database alone, for commands that only read or write rows."""
    with _database(read_settings()) as database:
        yield database


@contextmanager
def opened_backends() -> Iterator[Backends]:
    """Open the database and Redis. Raises ConfigError where one of the embedded ones is not there."""
    settings = read_settings()
    client = open_redis(redis_url(settings))
    keys = Keys(settings.prefix, settings.events_stream)
    with _database(settings) as database:
        yield Backends(database, client, keys, HandleQueue(client, keys), SystemClock())
    client.close()


def user_name() -> str:
    """Name the user of this shell, or their number where the machine knows no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@contextmanager
def _database(settings: Settings) -> Iterator[Database]:
    check_database_file(settings)
    database = open_database(database_url(settings), pool_size=2)
    try:
        yield database
    finally:
        database.dispose()


def _log_level(wanted: LogLevel) -> LogLevel:
    return wanted if wanted is LogLevel.DEBUG else LogLevel.WARNING
