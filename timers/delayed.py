"""Pending executions that are due become runs, or say why not (docs/delayed.md, "Firing").

Any number of sweeps may go on at once. A sweep claims rows in one transaction and settles them in another;
one that dies in between leaves a claim, which goes back after a while. The run is made in the transaction
that marks its row, under the row's id, so there is one run or none, never two.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from shared.db.faults import DATA_FAULTS, is_data_fault
from shared.db.pending_due import (
    DueClaim,
    claim_due,
    due_rows,
    execute_claimed,
    lock_claimed,
    return_stuck,
    skip_claimed,
    stuck_claims,
)
from shared.db.persons_moves import WokenRun
from shared.errors import KnockonError
from shared.faults import FaultPoint, passed
from shared.keys import delayed_key
from shared.logs import get_logger
from shared.model.pending import PendingSkip
from shared.observations import Measure, Observations
from shared.services.backends import Backends
from shared.services.counting import count_up
from shared.services.standing import Rules
from shared.services.waking import wake
from timers.delayed_deciding import decide
from timers.delayed_runs import arm_anew, make_runs

CHOSEN: Final = 500
BATCH: Final = 100
PASS_S: Final = 2.0  # what a backlog may take before the other duties have their turn
STUCK_AFTER: Final = timedelta(minutes=5)

log: Final = get_logger("timers")


@dataclass(frozen=True, slots=True)
class Fired:
    """What one transaction did: runs to be woken, how late each row was, how many were skipped and why.

    `unreadable` are the ids of those that were skipped since what is stored of them cannot be read.
    """

    runs: Sequence[WokenRun]
    late: Sequence[timedelta]
    skipped: Counter[PendingSkip]
    unreadable: Sequence[str] = ()


class DelayedSweep:
    """Looks for pending executions that are due. It remembers compiled conditions, and nothing else."""

    def __init__(self, backends: Backends, expiry: timedelta) -> None:
        """Know no conditions yet; what is due for longer than `expiry` does not fire."""
        self._backends = backends
        self._expiry = expiry
        self._rules = Rules()
        self.lateness: Final = Observations(backends.keys)

    def pass_once(self) -> None:
        """Fire what is due now; of a long backlog a part. A second pass at the same instant finds nothing."""
        self._return_stuck()
        until = self._backends.clock.monotonic() + PASS_S
        while True:
            with self._backends.database.read() as conn:
                chosen = due_rows(conn, now=self._backends.clock.now(), most=CHOSEN)
            batches = (chosen[at : at + BATCH] for at in range(0, len(chosen), BATCH))
            claimed = [self._take(batch) for batch in batches]
            if len(chosen) < CHOSEN or not any(claimed) or self._backends.clock.monotonic() >= until:
                return

    def _take(self, chosen: Sequence[DueClaim]) -> int:
        """Claim rows and settle them; give how many of them were ours."""
        now = self._backends.clock.now()
        claims = self._backends.database.transact(lambda conn: claim_due(conn, chosen, now=now))
        passed(FaultPoint.DELAYED_AFTER_CLAIM)
        if claims:
            self._settle(claims)
        return len(claims)

    def _settle(self, claims: Sequence[DueClaim]) -> None:
        """Settle claims as one set, or each alone where one spoils it.

        That one stays claimed for a while, and comes back until it has expired.
        """
        try:
            self._commit(claims)
        except (*DATA_FAULTS, AssertionError, AttributeError, KnockonError) as error:
            if isinstance(error, DBAPIError) and not is_data_fault(error):
                raise
            if len(claims) == 1:
                log.error("delayed_not_settled", pending_id=claims[0].id, reason=repr(error)[:200])
                return
            for claim in claims:
                self._settle([claim])

    def _commit(self, claims: Sequence[DueClaim]) -> None:
        now = self._backends.clock.now()
        fired = self._backends.database.transact(partial(self._write, claims, now))
        passed(FaultPoint.DELAYED_AFTER_COMMIT)
        for late in fired.late:
            self.lateness.add(Measure.SWEEP_LATENESS, late)
        if fired.runs:
            wake(self._backends, fired.runs, now)
            log.info("delayed_fired", count=len(fired.runs))
        if fired.skipped:
            log.info("delayed_skipped", reasons={str(why): n for why, n in fired.skipped.items()})
        for pending_id in fired.unreadable:
            log.error("delayed_unreadable", pending_id=pending_id, reason=str(PendingSkip.UNREADABLE))
        self._count(fired)

    def _write(self, claims: Sequence[DueClaim], now: datetime, conn: Connection) -> Fired:
        locked = lock_claimed(conn, claims)
        found = decide(conn, locked.rows, self._rules, now - self._expiry, now)
        found.skipped.extend((claim, PendingSkip.UNREADABLE) for claim in locked.unreadable)
        runs = make_runs(conn, found.firing, now)
        execute_claimed(conn, runs.by_row, now=now)
        skip_claimed(conn, found.skipped, now=now)
        arm_anew(conn, found.moved, now)
        passed(FaultPoint.DELAYED_BEFORE_COMMIT)
        return Fired(
            runs.woken,
            [now - each.row.due_at for each in found.firing],
            Counter(reason for _, reason in found.skipped),
            [each.id for each, reason in found.skipped if reason is PendingSkip.UNREADABLE],
        )

    def _return_stuck(self) -> None:
        now = self._backends.clock.now()
        before = now - STUCK_AFTER
        with self._backends.database.read() as conn:
            stuck = stuck_claims(conn, before=before, most=CHOSEN)
        if stuck:
            back = self._backends.database.transact(
                lambda conn: return_stuck(conn, stuck, before=before, now=now)
            )
            log.warning("delayed_claims_returned", count=len(back))

    def _count(self, fired: Fired) -> None:
        """Raise the counters."""
        keys = self._backends.keys
        counts = Counter({delayed_key(keys, f"skipped:{why}"): n for why, n in fired.skipped.items()})
        counts[delayed_key(keys, "executed")] += len(fired.runs)
        count_up(self._backends, +counts)
