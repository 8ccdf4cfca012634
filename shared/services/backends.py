"""What every service and process is handed: the servers it works on, and who asks."""

from dataclasses import dataclass

from shared.db.engine import PATIENT, Database, Patience, open_database
from shared.errors import SettingsError
from shared.keys import Keys
from shared.logs import get_logger
from shared.queue import HandleQueue
from shared.redis_port import REDIS_ERRORS, RedisPort, no_redis, open_redis
from shared.settings import Settings
from shared.time.clock import Clock, SystemClock

log = get_logger("services")


@dataclass(frozen=True, slots=True)
class Backends:
    """The servers of one deployment, opened once by whoever starts."""

    database: Database
    redis: RedisPort
    keys: Keys
    queue: HandleQueue
    clock: Clock

    def close(self) -> None:
        """Close the connections."""
        self.database.dispose()
        self.redis.close()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, for which workspace; `actor` stands in the audit (`USER cli:anna`)."""

    workspace_id: str
    actor: str


def open_backends(settings: Settings, pool_size: int, patience: Patience = PATIENT) -> Backends:
    """Open the servers that the settings name; nothing is connected yet.

    Raises SettingsError where REDIS_URL or DATABASE_URL is missing: the embedded ones are filled in above us.
    """
    if settings.redis_url is None or settings.database_url is None:
        raise SettingsError("REDIS_URL, DATABASE_URL: both must be set for this process")
    database = open_database(settings.database_url, pool_size=pool_size, patience=patience)
    return _around(open_redis(settings.redis_url), settings, database)


def open_without_redis(settings: Settings, database_url: str, pool_size: int, why: str) -> Backends:
    """Open the database alone, for what needs no Redis; whatever asks for one is told why there is none."""
    return _around(no_redis(why), settings, open_database(database_url, pool_size=pool_size))


def _around(redis: RedisPort, settings: Settings, database: Database) -> Backends:
    keys = Keys(settings.prefix, settings.events_stream)
    return Backends(database, redis, keys, HandleQueue(redis, keys), SystemClock())


def announce_automations(backends: Backends) -> None:
    """Tell every matcher that automations changed. While Redis is away their own poll has to find it."""
    try:
        backends.redis.incr(backends.keys.index_version)
    except REDIS_ERRORS as error:
        log.warning("index_version_not_raised", reason=repr(error))
