"""Counters of what has happened, raised after it is committed: best effort, the rows are the truth."""

from collections.abc import Mapping

from shared.logs import get_logger
from shared.redis_port import REDIS_ERRORS
from shared.services.backends import Backends

log = get_logger("services")


def count_up(backends: Backends, counts: Mapping[str, int]) -> None:
    """Raise counters by their keys, if Redis can be reached."""
    try:
        with backends.redis.pipeline(transaction=False) as pipe:
            for key, times in counts.items():
                pipe.incrby(key, times)
            pipe.execute()
    except REDIS_ERRORS as error:
        log.warning("count_not_raised", reason=repr(error))
