"""What the watchdog works with in one process. Built by whoever starts it."""

from dataclasses import dataclass

from shared.db.engine import Database
from shared.keys import Keys
from shared.queue import HandleQueue
from shared.redis_port import RedisPort
from shared.settings import Settings
from shared.time.clock import Clock


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything from outside. `owner` is our name on the lock by which several watchdogs elect one."""

    settings: Settings
    database: Database
    redis: RedisPort
    keys: Keys
    queue: HandleQueue
    clock: Clock
    owner: str
