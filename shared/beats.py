"""Signs of life in Redis, of processes that leave no other: a sorted set for a part, in it each process.

A process beats every 10 s and leaves when it ends; one that died is forgotten by its silence.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.keys import Keys, beats_key
from shared.redis_port import PipelinePort, RedisPort

BEAT_S: Final = 10.0
SILENT_AFTER: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Pulse:
    """One process of a part, such as `matcher`, under a name of its own."""

    keys: Keys
    part: str
    name: str

    def beat(self, pipe: PipelinePort, now: datetime) -> None:
        """Note that it lives, as part of the caller's commands."""
        key = beats_key(self.keys, self.part)
        pipe.zadd(key, {self.name: now.timestamp()})
        pipe.zremrangebyscore(key, "-inf", (now - SILENT_AFTER).timestamp())
        pipe.expire(key, SILENT_AFTER)

    def leave(self, pipe: PipelinePort) -> None:
        """Note that it ends, as part of the caller's commands."""
        pipe.zrem(beats_key(self.keys, self.part), self.name)


def count_beating(client: RedisPort, keys: Keys, part: str, now: datetime) -> int:
    """Count the processes of a part that have beaten lately."""
    since = (now - SILENT_AFTER).timestamp()
    return len(client.zrangebyscore(beats_key(keys, part), since, "+inf"))
