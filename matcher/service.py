"""The matcher as a process."""

from datetime import timedelta
from typing import Final

from matcher.intake import Intake
from matcher.loop import Loop
from matcher.stream import Stream
from shared.logs import get_logger
from shared.process import FAILED, StopFlag, make_owner
from shared.services.backends import Backends, open_backends
from shared.settings import Settings

POOL_SIZE: Final = 2

log = get_logger("matcher")


def serve(settings: Settings) -> int:
    """Match events until SIGTERM or SIGINT; give the exit code, which is 0 only when asked to end.

    Raises SettingsError if there is no server to work with.
    """
    stop = StopFlag()
    stop.listen()
    backends = open_backends(settings, POOL_SIZE)
    consumer = make_owner()
    log.info("matcher_started", consumer=consumer)
    try:
        build_loop(settings, backends, consumer).run(stop)
    except Exception:
        log.exception("matcher_failed")
        return FAILED
    finally:
        backends.close()
    log.info("matcher_stopped")
    return 0


def build_loop(settings: Settings, backends: Backends, consumer: str) -> Loop:
    """Put a matcher together that reads as `consumer`."""
    return Loop(
        Stream(backends.redis, backends.keys, consumer),
        Intake(backends, timedelta(days=settings.retention_days), settings.automation_max_depth),
        backends.clock,
        timedelta(seconds=settings.claim_idle_s),
    )
