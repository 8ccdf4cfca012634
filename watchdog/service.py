"""The watchdog's loop: each duty at its own period, by one of however many watchdogs there are.

It runs as a process of its own and as a thread inside every worker, so that it does not hang on what it
guards. A lock in SQL elects the one that acts; when that one is gone or frozen, another takes over within
seconds. A frozen one that comes back does no harm: every write is a compare-and-set.
"""

from datetime import timedelta
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from shared.db.locks import WATCHDOG, drop_lock, take_lock
from shared.db.server_clock import SKEW_MAX, clock_skew
from shared.duties import Duty, Outages
from shared.logs import get_logger
from shared.process import StopFlag, make_owner
from shared.redis_port import REDIS_ERRORS
from shared.services.backends import Backends, open_backends
from shared.settings import Settings
from watchdog.leases import Leases
from watchdog.lost_handles import requeue_lost
from watchdog.parts import Parts
from watchdog.relay import forget_sent, relay_outbox
from watchdog.retention import TURN_EVERY_S, Pruner
from watchdog.trim import trim_stream

TICK_S: Final = 1.0
ELECTION_S: Final = 5.0
HELD_PERIODS: Final = 3
HOUR_S: Final = 3600.0
POOL_SIZE: Final = 2

log: Final = get_logger("watchdog")


class Watchdog:
    """Does the duties that are due, if this process is the elected one."""

    def __init__(self, parts: Parts) -> None:
        """Have every duty due at once."""
        self._parts = parts
        self._leases = Leases(parts)
        settings = parts.settings
        first = parts.clock.monotonic()
        self._duties = (
            Duty("leases", settings.watchdog_leases_s, self._leases.reclaim, first),
            Duty("handles", settings.watchdog_handles_s, lambda: requeue_lost(parts), first),
            Duty("outbox", settings.watchdog_handles_s, lambda: relay_outbox(parts), first),
            Duty("stream", settings.watchdog_handles_s, lambda: trim_stream(parts), first),
            Duty("sent", HOUR_S, lambda: forget_sent(parts), first),
            Duty("retention", TURN_EVERY_S, Pruner(parts).take_turn, first),
        )
        self._next_election = first
        self._is_compared = False
        self._has_lock = False
        self._outages = Outages("watchdog")

    def run(self, stop: StopFlag) -> None:
        """Keep watch until the flag is raised; an outage or a bug costs a pass, never the watch."""
        while not stop.is_raised():
            try:
                self.tick()
            except (SQLAlchemyError, *REDIS_ERRORS) as error:
                self._outages.note(error)
            except Exception:
                log.exception("watchdog_pass_failed")
            else:
                self._outages.end()
            stop.wait(TICK_S)
        self._resign()

    def tick(self) -> None:
        """Do what is due now. A duty that fails waits for its next turn; the others do not."""
        if not self._is_compared:
            self._warn_of_skew()
        now_s = self._parts.clock.monotonic()
        if now_s >= self._next_election:
            self._has_lock = self._is_elected(now_s)
        for duty in self._duties if self._has_lock else ():
            if duty.due > now_s:
                continue
            try:
                log.debug("duty_started", duty=duty.name)
                duty.work()
            finally:
                # Counted from the end, so that two looks at a lease are a whole period apart.
                duty.due = self._parts.clock.monotonic() + duty.every_s

    def _is_elected(self, now_s: float) -> bool:
        """Take the lock or keep it; a dead holder is replaced within three periods of election."""
        period_s = min(ELECTION_S, self._parts.settings.watchdog_leases_s)
        self._has_lock = False
        self._next_election = now_s + period_s
        hold = timedelta(seconds=period_s * HELD_PERIODS)
        now = self._parts.clock.now()
        owner = self._parts.owner
        return self._parts.database.transact(
            lambda conn: take_lock(conn, WATCHDOG, owner, now=now, hold=hold)
        )

    def _warn_of_skew(self) -> None:
        with self._parts.database.read() as conn:
            skew = clock_skew(conn, self._parts.clock.now())
        self._is_compared = True
        if skew is not None and abs(skew) > SKEW_MAX:
            log.warning("clock_is_off", seconds=round(skew.total_seconds(), 1))

    def _resign(self) -> None:
        """Let another one take over at once, rather than when the lock has run out."""
        try:
            self._parts.database.transact(lambda conn: drop_lock(conn, WATCHDOG, self._parts.owner))
        except SQLAlchemyError as error:
            log.warning("lock_not_given_up", error=error)


def make_parts(settings: Settings, backends: Backends) -> Parts:
    """Give a watchdog of its own name what it works with."""
    return Parts(
        database=backends.database,
        redis=backends.redis,
        keys=backends.keys,
        queue=backends.queue,
        clock=backends.clock,
        settings=settings,
        owner=make_owner(),
    )


def serve(settings: Settings) -> int:
    """Keep watch in this process until it is asked to end; give its exit code.

    Raises SettingsError where an address is missing.
    """
    stop = StopFlag()
    stop.listen()
    backends = open_backends(settings, POOL_SIZE)
    log.info("watchdog_started")
    Watchdog(make_parts(settings, backends)).run(stop)
    backends.close()
    log.info("watchdog_stopped")
    return 0
