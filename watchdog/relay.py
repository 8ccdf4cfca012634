"""Events that were committed but not sent, because the process died in between: they are sent now."""

from datetime import timedelta
from typing import Final

from shared.db.outbox import delete_sent, lock_unsent
from shared.logs import get_logger
from shared.services.emitting import send_events
from watchdog.parts import Parts

BATCH: Final = 500
LEFT_BEHIND: Final = timedelta(seconds=10)
KEPT: Final = timedelta(days=1)
FORGOTTEN_AT_ONCE: Final = 5000

log: Final = get_logger("watchdog")


def relay_outbox(parts: Parts) -> None:
    """Send what has waited for 10 seconds, oldest first.

    An event that was sent already is sent again under the same id, which starts nothing twice.
    """
    while _relay(parts) == BATCH:
        pass


def _relay(parts: Parts) -> int:
    """Send one batch; report how many events went out."""
    before = parts.clock.now() - LEFT_BEHIND
    with parts.database.read() as conn:
        entries = lock_unsent(conn, before=before, most=BATCH)
    if not entries:
        return 0
    sent = send_events(parts, entries)
    log.warning("events_relayed", count=sent, refused=len(entries) - sent)
    return sent


def forget_sent(parts: Parts) -> None:
    """Delete events that were sent a day ago or earlier, a few thousand in a transaction."""
    before = parts.clock.now() - KEPT

    def forget() -> int:
        return parts.database.transact(lambda conn: delete_sent(conn, before=before, most=FORGOTTEN_AT_ONCE))

    while forget() == FORGOTTEN_AT_ONCE:
        pass
