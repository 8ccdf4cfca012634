"""A sign of life of this process, so that it is counted (docs/metrics.md, `knockon_processes`)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from shared.beats import BEAT_S, Pulse
from shared.process import make_owner
from shared.redis_port import REDIS_ERRORS
from shared.services.backends import Backends

PART: Final = "api"
ENDED_IN_S: Final = 2.0


@contextmanager
def beating(backends: Backends) -> Iterator[None]:
    """Beat for the length of the block, in a thread that a Redis which hangs holds up alone."""
    ended = threading.Event()
    thread = threading.Thread(target=_beat, args=(backends, ended), name="pulse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(ENDED_IN_S)


def _beat(backends: Backends, ended: threading.Event) -> None:
    pulse = Pulse(backends.keys, PART, make_owner())
    while not ended.is_set():
        with suppress(*REDIS_ERRORS), backends.redis.pipeline(transaction=False) as pipe:
            pulse.beat(pipe, backends.clock.now())
            pipe.execute()
        ended.wait(BEAT_S)
    with suppress(*REDIS_ERRORS), backends.redis.pipeline(transaction=False) as pipe:
        pulse.leave(pipe)
        pipe.execute()
