"""What a command works with, opened for the length of it: settings, database, Redis."""

import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from knockon.servers import check_database_file, database_url, with_servers
from shared.db.engine import Database, open_database
from shared.errors import ConfigError
from shared.log_choices import LogFormat, LogLevel
from shared.logs import configure_logs
from shared.services.backends import Backends, Caller, open_backends, open_without_redis
from shared.settings import Settings, load_settings

POOL_SIZE: Final = 2


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
    settings = read_settings()
    check_database_file(settings)
    database = open_database(database_url(settings), pool_size=POOL_SIZE)
    try:
        yield database
    finally:
        database.dispose()


@contextmanager
def opened_backends() -> Iterator[Backends]:
    """Open the database and Redis. Raises ConfigError where one of the embedded ones is not there."""
    settings = read_settings()
    ready = with_servers(settings)
    check_database_file(settings)
    backends = open_backends(ready, POOL_SIZE)
    try:
        yield backends
    finally:
        backends.close()


@contextmanager
def opened_with_redis_or_without() -> Iterator[Backends]:
    """Open the database, and Redis where one runs; where none does, asking for it raises and says why."""
    settings = read_settings()
    check_database_file(settings)
    try:
        backends = open_backends(with_servers(settings), POOL_SIZE)
    except ConfigError as error:
        backends = open_without_redis(settings, database_url(settings), POOL_SIZE, str(error))
    try:
        yield backends
    finally:
        backends.close()


def user_name() -> str:
    """Name the user of this shell, or their number where the machine knows no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _log_level(wanted: LogLevel) -> LogLevel:
    return wanted if wanted is LogLevel.DEBUG else LogLevel.WARNING
