"""How many workers live: RQ's registry of them, which each writes anew with every beat."""

from typing import Final

from rq import worker_registration
from rq.suspension import WORKERS_SUSPENDED

from shared.beats import SILENT_AFTER
from shared.keys import Keys
from shared.model.runs import QueueKind
from shared.redis_port import RedisPort

STANDING_TTL_S: Final = 60
SUSPENDED: Final = WORKERS_SUSPENDED


def count_workers(client: RedisPort, keys: Keys) -> int:
    """Count the workers of this deployment that have beaten lately."""
    by_queue = worker_registration.WORKERS_BY_QUEUE_KEY % keys.queue(QueueKind.MAIN)
    with client.pipeline(transaction=False) as pipe:
        pipe.smembers(by_queue)
        (names,) = pipe.execute()
        for name in names:
            pipe.ttl(name)
        left_s = pipe.execute()
    return sum(left > STANDING_TTL_S - SILENT_AFTER.total_seconds() for left in left_s)
