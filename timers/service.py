"""The timers' loop: what is due now, many times a minute, by any number of processes at once.

Nobody is elected. Processes that look at the same rows share them by their locks, and what one of them has
fired is due for no other. A thread beside the loop sends alerts, which may wait for the world.
"""

import threading
from contextlib import suppress
from datetime import timedelta
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from shared.beats import BEAT_S, Pulse
from shared.duties import Duty, Outages
from shared.logs import get_logger
from shared.process import StopFlag, make_owner
from shared.redis_port import REDIS_ERRORS, PipelinePort
from shared.services.backends import Backends, open_backends
from shared.settings import Settings
from timers.alerting import Teller
from timers.bulk import BulkWork
from timers.delayed import DelayedSweep
from timers.idle import IdleSweep
from timers.reconcile import EVERY_S, reconcile
from timers.schedules import Sweep

POOL_SIZE: Final = 2
AGAIN_S: Final = 5.0
ENDED_IN_S: Final = 5.0  # an alert that is cut off is sent again, by its row

log: Final = get_logger("timers")


class Timers:
    """Does the duties that are due. They do not wait for each other's failures."""

    def __init__(self, settings: Settings, backends: Backends) -> None:
        """Have every duty due at once."""
        self._backends = backends
        self._clock = backends.clock
        self._pulse = Pulse(backends.keys, "timers", make_owner())
        self._interval_s = settings.timers_interval_s
        self._outages = Outages("timers")
        sweep = Sweep(backends, timedelta(seconds=settings.schedule_catchup_s))
        delayed = DelayedSweep(backends, timedelta(hours=settings.delay_expiry_h))
        idle = IdleSweep(backends)
        self._lateness = (sweep.lateness, delayed.lateness, idle.lateness)
        first = self._clock.monotonic()
        self._duties = (
            Duty("beat", BEAT_S, self._beat, first),
            Duty("schedules", 0.0, sweep.pass_once, first),
            Duty("reconcile", EVERY_S, lambda: reconcile(backends), first),
            Duty("delayed", 0.0, delayed.pass_once, first),
            Duty("idle", 0.0, idle.pass_once, first),
            Duty("bulk", 0.0, BulkWork(backends).pass_once, first),
        )

    def run(self, stop: StopFlag) -> None:
        """Keep time until the flag is raised; an outage or a bug costs a pass, never the loop."""
        while not stop.is_raised():
            self.tick()
            stop.wait(self._interval_s)
        self._leave()

    def tick(self) -> None:
        """Do what is due now. A duty that failed is tried again soon."""
        for duty in self._duties:
            if duty.due <= self._clock.monotonic():
                again_s = duty.every_s if self._is_done(duty) else min(duty.every_s, AGAIN_S)
                duty.due = self._clock.monotonic() + again_s

    def _beat(self) -> None:
        """Show that this process lives; a Redis that is away does not hold up what needs rows alone."""
        with suppress(*REDIS_ERRORS), self._backends.redis.pipeline(transaction=False) as pipe:
            self._pulse.beat(pipe, self._clock.now())
            self._tell_lateness(pipe)
            pipe.execute()

    def _leave(self) -> None:
        with suppress(*REDIS_ERRORS), self._backends.redis.pipeline(transaction=False) as pipe:
            self._pulse.leave(pipe)
            self._tell_lateness(pipe)
            pipe.execute()

    def _tell_lateness(self, pipe: PipelinePort) -> None:
        for observed in self._lateness:
            observed.add_to(pipe)

    def _is_done(self, duty: Duty) -> bool:
        try:
            duty.work()
        except (SQLAlchemyError, *REDIS_ERRORS) as error:
            self._outages.note(error)
        except Exception:
            log.exception("timers_pass_failed", duty=duty.name)
        else:
            self._outages.end()
            return True
        return False


def serve(settings: Settings) -> int:
    """Keep time in this process until it is asked to end; give its exit code.

    Raises SettingsError where an address is missing.
    """
    stop = StopFlag()
    stop.listen()
    backends = open_backends(settings, POOL_SIZE)
    log.info("timers_started")
    alerts = threading.Thread(target=Teller(settings, backends).run, args=(stop,), name="alerts", daemon=True)
    alerts.start()
    Timers(settings, backends).run(stop)
    alerts.join(ENDED_IN_S)
    backends.close()
    log.info("timers_stopped")
    return 0
