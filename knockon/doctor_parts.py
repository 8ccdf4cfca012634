"""Whether each part of the engine has given a sign of life, and how to start the ones that have not."""

from collections.abc import Container, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from knockon.findings import Finding, Level
from knockon.keeping import up_since
from knockon.rooms import Room
from knockon.servers import database_url, redis_url
from shared.beats import SILENT_AFTER, count_beating
from shared.db.engine import open_database
from shared.db.locks import WATCHDOG, is_lock_held
from shared.errors import ConfigError
from shared.keys import Keys
from shared.presence import count_workers
from shared.redis_port import REDIS_ERRORS, open_redis
from shared.settings import Settings
from shared.time.clock import SystemClock

STARTING: Final = timedelta(seconds=30)


def examine_parts(settings: Settings, away: Container[str]) -> Iterator[Finding]:
    """Look for a living process of each part; what lies in a server that is away is left out.

    That no part at all lives may be as it should, and is a warning. That some live and others do not, or
    none under an `up`, is a failure, once an `up` has had the time to start them.
    """
    living: dict[Room, int] = {}
    if "redis" not in away:
        living |= _in_redis(settings)
    if "sql" not in away:
        living |= _in_sql(settings)
    kept_for = _kept_for(settings)
    for room, count in living.items():
        if count:
            yield Finding(Level.OK, room, "one keeps watch" if room is Room.WATCHDOG else f"{count} at work")
        elif kept_for is not None and timedelta(0) <= kept_for < STARTING:
            text = f"still starting: knockon up has run for {kept_for.total_seconds():.0f} s"
            yield Finding(Level.WARN, room, text, "look again in a moment")
        else:
            level = Level.FAIL if kept_for is not None or any(living.values()) else Level.WARN
            fix = "knockon up, or knockon run " + room if kept_for is None else "see what knockon up prints"
            text = f"none has given a sign of life for {SILENT_AFTER.total_seconds():.0f} s"
            yield Finding(level, room, text, fix)


def _in_redis(settings: Settings) -> dict[Room, int]:
    keys = Keys(settings.prefix, settings.events_stream)
    now = SystemClock().now()
    try:
        with closing(open_redis(redis_url(settings))) as client:
            return {
                Room.MATCHER: count_beating(client, keys, Room.MATCHER, now),
                Room.WORKER: count_workers(client, keys),
                Room.TIMERS: count_beating(client, keys, Room.TIMERS, now),
                Room.SCHEDULER: count_beating(client, keys, Room.SCHEDULER, now),
            }
    except (ConfigError, *REDIS_ERRORS):
        return {}


def _in_sql(settings: Settings) -> dict[Room, int]:
    """See whether a watchdog is elected: one that runs by itself, or one inside a worker."""
    database = open_database(database_url(settings), pool_size=1)
    try:
        with database.read() as conn:
            return {Room.WATCHDOG: int(is_lock_held(conn, WATCHDOG, now=SystemClock().now()))}
    except SQLAlchemyError:
        return {}
    finally:
        database.dispose()


def _kept_for(settings: Settings) -> timedelta | None:
    """Tell for how long an `up` has held the data folder; None if none does."""
    try:
        since = up_since(settings.data_dir)
    except OSError:
        return None
    return SystemClock().now() - since if since else None
