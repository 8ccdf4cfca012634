"""Events that stand in the outbox go to the stream: right after their commit, or later by the watchdog."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy.exc import DBAPIError

from shared.db.outbox import OutboxEntry, mark_sent
from shared.faults import FaultPoint, passed
from shared.logs import get_logger
from shared.redis_port import REDIS_ERRORS
from shared.services.backends import Backends

AT_ONCE: Final = 500

log = get_logger("services")


def send_events(backends: Backends, entries: Sequence[OutboxEntry]) -> int:
    """Send committed events and note that they are on the stream; give how many of them are.

    What Redis refuses stays unsent. Raises what Redis and SQL raise while they are away; an event that is
    sent a second time has the same id, which starts nothing twice.
    """
    passed(FaultPoint.OUTBOX_BEFORE_EMIT)
    with backends.redis.pipeline(transaction=False) as pipe:
        for entry in entries:
            pipe.xadd(backends.keys.stream, dict(entry.fields))
        answers = pipe.execute(raise_on_error=False)
    passed(FaultPoint.OUTBOX_AFTER_EMIT)
    sent = [entry.id for entry, answer in zip(entries, answers, strict=True) if isinstance(answer, bytes)]
    backends.database.transact(lambda conn: mark_sent(conn, sent, now=backends.clock.now()))
    return len(sent)


def try_to_send(backends: Backends, entries: Sequence[OutboxEntry]) -> None:
    """Send events if the servers answer; what is left over is sent by the watchdog."""
    try:
        for first in range(0, len(entries), AT_ONCE):
            send_events(backends, entries[first : first + AT_ONCE])
    except (DBAPIError, *REDIS_ERRORS) as error:
        log.warning("events_left_to_watchdog", events=len(entries), reason=type(error).__name__)
