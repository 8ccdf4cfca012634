"""What every service is handed: the servers it works on, and who asks."""

from dataclasses import dataclass

from shared.db.engine import Database
from shared.keys import Keys
from shared.logs import get_logger
from shared.queue import HandleQueue
from shared.redis_port import REDIS_ERRORS, RedisPort
from shared.time.clock import Clock

log = get_logger("services")


@dataclass(frozen=True, slots=True)
class Backends:
    """The servers of one deployment, opened once by whoever starts."""

    database: Database
    redis: RedisPort
    keys: Keys
    queue: HandleQueue
    clock: Clock


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, for which workspace; `actor` stands in the audit (`USER cli:anna`)."""

    workspace_id: str
    actor: str


def announce_automations(backends: Backends) -> None:
    """Tell every matcher that automations changed. While Redis is away their own poll has to find it."""
    try:
        backends.redis.incr(backends.keys.index_version)
    except REDIS_ERRORS as error:
        log.warning("index_version_not_raised", reason=repr(error))
