"""Where Redis and SQL are: what the settings name, else the embedded ones in the data folder."""

from typing import Final

from knockon.embedded import find_redis
from knockon.keeping import is_up
from shared.db.engine import sqlite_file
from shared.errors import ConfigError
from shared.settings import Settings

DATABASE_FILE: Final = "knockon.db"


def database_url(settings: Settings) -> str:
    """Name the database: DATABASE_URL, else a file in the data folder."""
    return settings.database_url or f"sqlite:///{settings.data_dir / DATABASE_FILE}"


def redis_url(settings: Settings) -> str:
    """Name the Redis: REDIS_URL, else the one that `knockon up` runs. Raises ConfigError if none runs."""
    if settings.redis_url is not None:
        return settings.redis_url
    running = find_redis(settings.data_dir)
    if running is None and is_up(settings.data_dir):
        raise ConfigError(
            f"knockon up runs in {settings.data_dir}, but its Redis does not yet, or not any more; "
            "wait a moment, or see what it prints"
        )
    if running is None:
        raise ConfigError(
            f"REDIS_URL is not set and no Redis runs in {settings.data_dir}; start it with: knockon up"
        )
    return running.url


def with_servers(settings: Settings) -> Settings:
    """Give the settings with both addresses filled in, as the processes need them."""
    return settings.model_copy(
        update={"redis_url": redis_url(settings), "database_url": database_url(settings)}
    )


def server_variables(settings: Settings) -> dict[str, str]:
    """Give the environment that leads another process to the same servers and data folder."""
    return {
        "REDIS_URL": settings.redis_url or "",
        "DATABASE_URL": settings.database_url or "",
        "KNOCKON_DATA_DIR": str(settings.data_dir),
    }


def has_database(settings: Settings) -> bool:
    """Tell whether a database can be asked: it is no file, or the file has been made."""
    file = sqlite_file(database_url(settings))
    return file is None or file.exists()


def check_database_file(settings: Settings) -> None:
    """Raise ConfigError if the database is a file and nobody has made it yet."""
    if has_database(settings):
        return
    if settings.database_url is None:
        raise ConfigError(f"there is no database in {settings.data_dir} yet; make it with: knockon up")
    raise ConfigError("DATABASE_URL names a file that is not there yet; make it with: knockon migrate")
