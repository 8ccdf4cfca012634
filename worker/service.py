"""The two processes of this room: the worker drives runs, the scheduler hands waiting retries back."""

import threading
from typing import Final

from pipeline.engine import Engine
from pipeline.parts import Parts, open_parts
from shared.errors import SettingsError
from shared.keys import Keys
from shared.logs import get_logger
from shared.process import FAILED, StopFlag, leave, make_owner
from shared.redis_port import open_redis
from shared.services.backends import Backends
from shared.settings import Settings
from shared.time.clock import SystemClock
from watchdog.service import Watchdog, make_parts
from worker.presence import Link
from worker.run_worker import RunWorker
from worker.scheduler import RetryScheduler
from worker.settlers import with_settlers

FAILURE_GRACE_S: Final = 5.0
FLUSH_S: Final = 27.0
GUARD_S: Final = 1.0
WATCH_END_S: Final = 2.0

log: Final = get_logger("worker")
scheduler_log: Final = get_logger("scheduler")


def serve(settings: Settings) -> int:
    """Drive runs in this process until it is asked to end; give its exit code.

    Raises SettingsError where an address is missing.
    """
    return serve_parts(with_settlers(open_parts(settings)))


def serve_parts(parts: Parts) -> int:
    """Drive runs with these parts until the process is asked to end; 0 only if it was asked."""
    stop = StopFlag()
    stop.listen()
    settings = parts.settings
    engine = Engine(parts)
    engine.start()
    _start_guard(engine)
    watch = _start_watch(parts, stop)
    link = Link(open_redis(settings.redis_url or ""), parts.keys, parts.clock, parts.owner)
    worker = RunWorker(link, engine, stop)
    log.info("worker_started", name=parts.owner, concurrency=settings.automations_worker_concurrency)
    worker.work()
    was_asked = stop.is_raised() and worker.failure is None
    log.info("worker_stopping", reason=worker.failure or ("asked" if was_asked else "its loop ended"))
    is_flushed = _stop_engine(engine, settings.shutdown_grace_s if was_asked else FAILURE_GRACE_S)
    stop.raise_()
    watch.join(WATCH_END_S)
    if is_flushed:
        log.info("worker_stopped")
    return 0 if was_asked and is_flushed else FAILED


def serve_scheduler(settings: Settings) -> int:
    """Hand retries back in this process until it is asked to end; give its exit code.

    Raises SettingsError where REDIS_URL is missing.
    """
    if settings.redis_url is None:
        raise SettingsError("REDIS_URL: must be set for this process")
    stop = StopFlag()
    stop.listen()
    keys = Keys(settings.prefix, settings.events_stream)
    link = Link(open_redis(settings.redis_url), keys, SystemClock(), make_owner())
    scheduler_log.info("scheduler_started")
    RetryScheduler(link, stop).run()
    link.redis.close()
    scheduler_log.info("scheduler_stopped")
    return 0


def _stop_engine(engine: Engine, grace_s: float) -> bool:
    """Let the engine finish and hand back; False where it could not in time, and leases have to run out."""
    closing = threading.Thread(target=engine.stop, args=(grace_s,), name="closing", daemon=True)
    closing.start()
    closing.join(grace_s + FLUSH_S)
    if closing.is_alive():
        log.error("shutdown_unfinished")
    return not closing.is_alive()


def _start_watch(parts: Parts, stop: StopFlag) -> threading.Thread:
    """Keep a watchdog in this process too, so that it does not hang on what it guards."""
    backends = Backends(parts.database, parts.redis, parts.keys, parts.queue, parts.clock)
    watchdog = Watchdog(make_parts(parts.settings, backends))
    thread = threading.Thread(target=watchdog.run, args=(stop,), name="watchdog", daemon=True)
    thread.start()
    return thread


def _start_guard(engine: Engine) -> None:
    """End the process if it is still there when its engine failed a while ago: its loop may hang too."""

    def guard() -> None:
        pause = threading.Event()
        while engine.failure() is None:
            pause.wait(GUARD_S)
        pause.wait(FAILURE_GRACE_S + FLUSH_S)
        leave(FAILED)

    threading.Thread(target=guard, name="guard", daemon=True).start()
