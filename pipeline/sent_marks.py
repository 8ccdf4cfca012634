"""Which events are on the stream is noted in the outbox now and then, not event by event.

An event that was sent and not yet marked when a process dies is sent again by the watchdog, under its old id.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy.exc import DBAPIError

from pipeline.parts import Parts
from shared.db.outbox import OutboxEntry, mark_sent
from shared.logs import get_logger

log = get_logger("pipeline")

EVERY_S: Final = 0.5
MOST: Final = 1_000


class SentMarks:
    """The events that were sent since the last note of them. One thread uses it."""

    def __init__(self, parts: Parts) -> None:
        """Start with none."""
        self._parts = parts
        self._ids: list[str] = []
        self._first_at = 0.0

    def add(self, sent: Sequence[OutboxEntry]) -> None:
        """Take sent events in; they are noted in a while, or now if they are many."""
        if not sent:
            return
        if not self._ids:
            self._first_at = self._parts.clock.monotonic()
        self._ids += [entry.id for entry in sent]
        if len(self._ids) >= MOST:
            self.write()

    def due_s(self) -> float | None:
        """Give the seconds until they must be noted, 0 when it is time; None when there are none."""
        if not self._ids:
            return None
        return max(0.0, self._first_at + EVERY_S - self._parts.clock.monotonic())

    def write(self) -> None:
        """Note what was sent. While SQL is away it is left to the watchdog, which sends it again."""
        ids, self._ids = self._ids, []
        if not ids:
            return
        now = self._parts.clock.now()
        try:
            self._parts.database.transact(lambda conn: mark_sent(conn, ids, now=now))
        except DBAPIError as error:
            log.warning("outbox_not_marked", events=len(ids), error=type(error.orig).__name__)
