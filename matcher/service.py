"""The matcher as a process."""

import socket
from datetime import timedelta
from typing import Final
from uuid import uuid4

from matcher.intake import Intake
from matcher.loop import Loop
from matcher.stream import Stream
from shared.db.engine import open_database
from shared.errors import SettingsError
from shared.keys import Keys
from shared.logs import get_logger
from shared.process import FAILED, StopFlag
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from shared.services.backends import Backends
from shared.settings import Settings
from shared.time.clock import SystemClock

POOL_SIZE: Final = 2

log = get_logger("matcher")


def serve(settings: Settings) -> int:
    """Match events until SIGTERM or SIGINT; give the exit code, which is 0 only when asked to end.

    Raises SettingsError if there is no server to work with.
    """
    stop = StopFlag()
    stop.listen()
    backends = _open(settings)
    consumer = f"{socket.gethostname()}-{uuid4()}"
    log.info("matcher_started", consumer=consumer)
    try:
        build_loop(settings, backends, consumer).run(stop)
    except Exception:
        log.exception("matcher_failed")
        return FAILED
    finally:
        backends.database.dispose()
        backends.redis.close()
    log.info("matcher_stopped")
    return 0


def build_loop(settings: Settings, backends: Backends, consumer: str) -> Loop:
    """Put a matcher together that reads as `consumer`."""
    return Loop(
        Stream(backends.redis, backends.keys, consumer),
        Intake(backends, timedelta(days=settings.retention_days)),
        backends.clock,
        timedelta(seconds=settings.claim_idle_s),
    )


def _open(settings: Settings) -> Backends:
    if settings.redis_url is None:
        raise SettingsError("REDIS_URL: is not set")
    if settings.database_url is None:
        raise SettingsError("DATABASE_URL: is not set")
    redis = open_redis(settings.redis_url)
    keys = Keys(settings.prefix, settings.events_stream)
    database = open_database(settings.database_url, pool_size=POOL_SIZE)
    return Backends(database, redis, keys, HandleQueue(redis, keys), SystemClock())
