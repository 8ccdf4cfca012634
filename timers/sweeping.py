"""What is due is claimed, settled, and made runs of: the one way of all that waits in rows of its own.

Any number of sweeps may go on at once. A sweep claims rows in one transaction and settles them in another;
one that dies in between leaves a claim, which goes back after a while. A run is made in the transaction that
gives it to its row, under the row's id, so there is one run or none, never two.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from shared.db.faults import DATA_FAULTS, is_data_fault
from shared.db.pending_due import DueClaim
from shared.db.persons_moves import WokenRun
from shared.errors import KnockonError
from shared.faults import FaultPoint, passed
from shared.observations import Measure, Observations
from shared.services.backends import Backends
from shared.services.waking import wake

CHOSEN: Final = 500
BATCH: Final = 100
PASS_S: Final = 2.0  # what a backlog may take before the other duties have their turn
STUCK_AFTER: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Fired:
    """What one transaction did: runs to be woken, how late each row was, how many ended instead and why.

    `unreadable` are the ids of those that ended since what is stored of them cannot be read.
    """

    runs: Sequence[WokenRun]
    late: Sequence[timedelta]
    ended: Counter[str]
    unreadable: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of rows: how they are chosen, claimed, found stuck and given back."""

    choose: Callable[..., Sequence[DueClaim]]
    claim: Callable[..., Sequence[DueClaim]]
    find_stuck: Callable[..., Sequence[DueClaim]]
    give_back: Callable[..., frozenset[str]]
    claimed: FaultPoint
    committed: FaultPoint


class DueSweep(ABC):
    """Looks for rows of one kind that are due."""

    def __init__(self, backends: Backends, kind: Kind) -> None:
        """Have measured nothing yet."""
        self.lateness: Final = Observations(backends.keys)
        self._backends = backends
        self._kind = kind

    @abstractmethod
    def write(self, claims: Sequence[DueClaim], now: datetime, conn: Connection) -> Fired:
        """Lock the claims that still stand, decide about them, and write what was decided."""

    @abstractmethod
    def tell(self, fired: Fired) -> None:
        """Log and count what was committed."""

    @abstractmethod
    def tell_unsettled(self, row_id: str, reason: str) -> None:
        """Log that a row could not be settled, and stays claimed for a while."""

    @abstractmethod
    def tell_returned(self, count: int) -> None:
        """Log that claims came to nothing and went back."""

    def pass_once(self) -> None:
        """Fire what is due now; of a long backlog a part. A second pass at the same instant finds nothing."""
        self._return_stuck()
        until = self._backends.clock.monotonic() + PASS_S
        while True:
            with self._backends.database.read() as conn:
                chosen = self._kind.choose(conn, now=self._backends.clock.now(), most=CHOSEN)
            batches = (chosen[at : at + BATCH] for at in range(0, len(chosen), BATCH))
            claimed = [self._take(batch) for batch in batches]
            if len(chosen) < CHOSEN or not any(claimed) or self._backends.clock.monotonic() >= until:
                return

    def settle(self, claims: Sequence[DueClaim]) -> None:
        """Settle claims as one set, or each alone where one spoils it; that one stays claimed for a while."""
        try:
            self._commit(claims)
        except (*DATA_FAULTS, AssertionError, AttributeError, KnockonError) as error:
            if isinstance(error, DBAPIError) and not is_data_fault(error):
                raise
            if len(claims) == 1:  # without the error's own words, which may hold what the row says
                self.tell_unsettled(claims[0].id, type(error).__name__)
                return
            for claim in claims:
                self.settle([claim])

    def _take(self, chosen: Sequence[DueClaim]) -> int:
        """Claim rows and settle them; give how many of them were ours."""
        now = self._backends.clock.now()
        claims = self._backends.database.transact(lambda conn: self._kind.claim(conn, chosen, now=now))
        passed(self._kind.claimed)
        if claims:
            self.settle(claims)
        return len(claims)

    def _commit(self, claims: Sequence[DueClaim]) -> None:
        now = self._backends.clock.now()
        fired = self._backends.database.transact(partial(self.write, claims, now))
        passed(self._kind.committed)
        for late in fired.late:
            self.lateness.add(Measure.SWEEP_LATENESS, late)
        if fired.runs:
            wake(self._backends, fired.runs, now)
        self.tell(fired)

    def _return_stuck(self) -> None:
        now = self._backends.clock.now()
        before = now - STUCK_AFTER
        with self._backends.database.read() as conn:
            stuck = self._kind.find_stuck(conn, before=before, most=CHOSEN)
        if stuck:
            back = self._backends.database.transact(
                lambda conn: self._kind.give_back(conn, stuck, before=before, now=now)
            )
            self.tell_returned(len(back))
