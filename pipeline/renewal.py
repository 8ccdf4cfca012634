"""Leases are renewed in time.

By the journal's writer, between two batches, for the runs that this process holds.
"""

from datetime import timedelta
from typing import Final

from sqlalchemy.exc import DBAPIError

from pipeline.held import HeldRuns
from pipeline.parts import Parts
from shared.db.claims import renew_leases
from shared.logs import get_logger

log = get_logger("pipeline")

SOON_S: Final = 0.001


class Renewal:
    """When leases are due for renewal, and the renewal itself: one statement for all of them."""

    def __init__(self, parts: Parts, held: HeldRuns) -> None:
        """Count from now."""
        self._parts = parts
        self._held = held
        self._done_at = parts.clock.monotonic()

    def due_s(self) -> float:
        """Give the seconds until the next renewal, a little above 0 when it is due."""
        due_at = self._done_at + self._parts.settings.lease_renew_s
        return max(SOON_S, due_at - self._parts.clock.monotonic())

    def renew_if_due(self) -> None:
        """Renew what is held, if it is time. While SQL is away leases run out, and others take over."""
        if self.due_s() > SOON_S:
            return
        self._done_at = self._parts.clock.monotonic()
        claims = sorted(self._held.claims(), key=lambda claim: claim.run_id)
        until = self._parts.clock.now() + timedelta(seconds=self._parts.settings.run_lease_s)
        try:
            kept = self._parts.database.transact(lambda conn: renew_leases(conn, claims, until))
        except DBAPIError as error:
            log.warning("leases_not_renewed", error=type(error.orig).__name__)
            return
        if len(kept) < len(claims):
            log.warning("leases_lost", runs=len(claims) - len(kept))
