"""The matcher's loop: read, take in, and now and then look after what was left behind.

While SQL or Redis is away it holds what it has, tries again with growing pauses, and reads nothing new.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from itertools import chain, repeat
from typing import Final, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from matcher.intake import Intake
from matcher.stream import Reading, Stream
from shared.beats import BEAT_S
from shared.errors import Unavailable
from shared.faults import FaultPoint, passed
from shared.logs import get_logger
from shared.process import StopFlag
from shared.redis_port import REDIS_ERRORS
from shared.time.clock import Clock

BATCH: Final = 200
LOOK_BACK_S: Final = 30.0
FORGET_S: Final = 3600.0
PAUSES_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
AWAY: Final = (Unavailable, DBAPIError, PoolTimeout, *REDIS_ERRORS)

T = TypeVar("T")

log = get_logger("matcher")


class Loop:
    """One matcher. `idle` is how long an entry may be pending before somebody else takes it over."""

    def __init__(self, stream: Stream, intake: Intake, clock: Clock, idle: timedelta) -> None:
        """Read nothing yet."""
        self._stream = stream
        self._intake = intake
        self._clock = clock
        self._idle = idle
        self._look_back_s = min(LOOK_BACK_S, idle.total_seconds() / 2)
        self._looked_back_s = float("-inf")
        self._forgot_s = float("-inf")
        self._beaten_s = float("-inf")

    def run(self, stop: StopFlag) -> None:
        """Work until the end is asked for. What is held then stays pending for somebody else.

        Raises what is nobody's outage; the entries at fault are handed out again, and in the end buried.
        """
        self._persist(stop, self._stream.join)
        while not stop.is_raised():
            if self._clock.monotonic() - self._looked_back_s >= self._look_back_s:
                self._look_back(stop)
            self._take(stop, self._persist(stop, self._read))
        self._leave()

    def _read(self) -> Reading:
        try:
            return self._stream.read(BATCH)
        except REDIS_ERRORS:
            self._looked_back_s = float("-inf")  # the entries may have been sent and the answer lost
            raise

    def _look_back(self, stop: StopFlag) -> None:
        """Take in what was handed to us and forgotten, then what other consumers left behind."""
        for read in (self._read_own, self._reclaim):
            while not stop.is_raised():
                reading = self._persist(stop, read)
                if reading is None or not reading.deliveries:
                    break
                log.info("entries_taken_again", entries=len(reading.deliveries))
                self._take(stop, reading)
        self._looked_back_s = self._clock.monotonic()
        if self._clock.monotonic() - self._forgot_s >= FORGET_S:
            self._persist(stop, self._stream.forget_consumers)
            self._forgot_s = self._clock.monotonic()

    def _read_own(self) -> Reading:
        return self._stream.read_own(BATCH)

    def _reclaim(self) -> Reading:
        return self._stream.reclaim(BATCH, self._idle)

    def _take(self, stop: StopFlag, reading: Reading | None) -> None:
        if reading is None:
            return
        passed(FaultPoint.MATCH_AFTER_READ)
        held = [each.entry_id for each in reading.deliveries]
        self._persist(stop, partial(self._intake.take, reading), partial(self._stream.keep, held))

    def _persist(
        self, stop: StopFlag, work: Callable[[], T], between: Callable[[], object] | None = None
    ) -> T | None:
        """Do `work` until no server is away; None when the end is asked for first."""
        failures = 0
        for pause_s in _pauses():
            self._beat()
            try:
                done = work()
            except AWAY as error:
                failures += 1
                if failures == 1:
                    log.warning("outage_began", error=type(error).__name__, reason=_words(error))
            else:
                if failures:
                    log.info("outage_ended", failures=failures)
                return done
            if stop.wait(pause_s):
                return None
            if between is not None:
                _try(between)
        return None

    def _beat(self) -> None:
        if self._clock.monotonic() - self._beaten_s >= BEAT_S:
            _try(lambda: self._stream.beat(self._clock.now()))
            self._beaten_s = self._clock.monotonic()

    def _leave(self) -> None:
        _try(self._stream.leave)


def _pauses() -> Iterator[float]:
    return chain(PAUSES_S, repeat(PAUSES_S[-1]))


def _try(work: Callable[[], object]) -> None:
    """Do what helps, if Redis answers."""
    try:
        work()
    except REDIS_ERRORS as error:
        log.debug("redis_away", error=type(error).__name__)


def _words(error: BaseException) -> str:
    """Give an error's own words, without the statement and its parameters that SQLAlchemy adds."""
    return str(error.orig if isinstance(error, DBAPIError) else error)
