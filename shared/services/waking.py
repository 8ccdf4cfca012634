"""Around the commit of a person's wish: the instant that events are stamped with, and the handles of runs."""

from collections.abc import Sequence
from datetime import datetime

from shared.db.persons_moves import WokenRun
from shared.errors import Unavailable
from shared.logs import get_logger
from shared.model.runs import QueueKind
from shared.redis_port import REDIS_ERRORS
from shared.services.backends import Backends

log = get_logger("services")


def redis_ms(backends: Backends) -> int:
    """Give the milliseconds that an entry published now would begin with. Raises Unavailable."""
    try:
        seconds, micros = backends.redis.time()
    except REDIS_ERRORS as error:
        raise Unavailable(f"Redis does not answer: {error}") from error
    return seconds * 1000 + micros // 1000


def wake(backends: Backends, runs: Sequence[WokenRun], at: datetime) -> bool:
    """Give runs that are PENDING since `at` their handles, best effort; False leaves it to the watchdog."""
    try:
        for kind in QueueKind:
            backends.queue.push(kind, [run.id for run in runs if run.queue is kind], at)
    except REDIS_ERRORS as error:
        log.warning("handles_not_pushed", runs=len(runs), reason=repr(error))
        return False
    return True
