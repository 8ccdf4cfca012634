"""Idle steps that are due become runs, or say why not (docs/idle-sequences.md, "Firing").

As pending executions: any number of sweeps may go on at once, a claim is one transaction, settling it
another, and what a sweep leaves that dies in between goes back after a while. The run is made in the
transaction that gives it to its step, under the step's id, so there is one run or none. From then on the step
is the run's.
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
from shared.db.idle_due import (
    claim_steps,
    due_steps,
    hand_over,
    lock_claimed_steps,
    return_steps,
    stuck_steps,
)
from shared.db.idle_steps import Settlement, settle_idle
from shared.db.pending_due import DueClaim
from shared.db.persons_moves import WokenRun
from shared.errors import KnockonError
from shared.faults import FaultPoint, passed
from shared.keys import idle_key
from shared.logs import get_logger
from shared.model.idle_steps import IdleResult, IdleStop
from shared.observations import Measure, Observations
from shared.rules.idling import status_of
from shared.services.backends import Backends
from shared.services.counting import count_up
from shared.services.waking import wake
from timers.idle_deciding import decide
from timers.idle_runs import make_runs

CHOSEN: Final = 500
BATCH: Final = 100
PASS_S: Final = 2.0  # what a backlog may take before the other duties have their turn
STUCK_AFTER: Final = timedelta(minutes=5)

log: Final = get_logger("timers")


@dataclass(frozen=True, slots=True)
class Fired:
    """What one transaction did: runs to be woken, how late each step was, how many were stopped and why."""

    runs: Sequence[WokenRun]
    late: Sequence[timedelta]
    stopped: Counter[IdleStop]


class IdleSweep:
    """Looks for idle steps that are due. It remembers nothing."""

    def __init__(self, backends: Backends) -> None:
        """Have measured nothing yet."""
        self._backends = backends
        self.lateness: Final = Observations(backends.keys)

    def pass_once(self) -> None:
        """Fire what is due now; of a long backlog a part. A second pass at the same instant finds nothing."""
        self._return_stuck()
        until = self._backends.clock.monotonic() + PASS_S
        while True:
            with self._backends.database.read() as conn:
                chosen = due_steps(conn, now=self._backends.clock.now(), most=CHOSEN)
            batches = (chosen[at : at + BATCH] for at in range(0, len(chosen), BATCH))
            claimed = [self._take(batch) for batch in batches]
            if len(chosen) < CHOSEN or not any(claimed) or self._backends.clock.monotonic() >= until:
                return

    def _take(self, chosen: Sequence[DueClaim]) -> int:
        """Claim steps and settle them; give how many of them were ours."""
        now = self._backends.clock.now()
        claims = self._backends.database.transact(lambda conn: claim_steps(conn, chosen, now=now))
        passed(FaultPoint.IDLE_AFTER_CLAIM)
        if claims:
            self._settle(claims)
        return len(claims)

    def _settle(self, claims: Sequence[DueClaim]) -> None:
        """Settle claims as one set, or each alone where one spoils it; that one stays claimed for a while."""
        try:
            self._commit(claims)
        except (*DATA_FAULTS, KnockonError) as error:
            if isinstance(error, DBAPIError) and not is_data_fault(error):
                raise
            if len(claims) == 1:
                log.error("idle_step_not_settled", step_id=claims[0].id, reason=type(error).__name__)
                return
            for claim in claims:
                self._settle([claim])

    def _commit(self, claims: Sequence[DueClaim]) -> None:
        now = self._backends.clock.now()
        fired = self._backends.database.transact(partial(self._write, claims, now))
        passed(FaultPoint.IDLE_AFTER_COMMIT)
        for late in fired.late:
            self.lateness.add(Measure.SWEEP_LATENESS, late)
        if fired.runs:
            wake(self._backends, fired.runs, now)
            log.info("idle_steps_due", count=len(fired.runs))
        if fired.stopped:
            log.info("idle_steps_stopped", reasons={str(why): n for why, n in fired.stopped.items()})
        resets = fired.stopped[IdleStop.CUSTOMER_REPLIED]
        if resets:
            count_up(self._backends, {idle_key(self._backends.keys, IdleResult.RESET): resets})

    def _write(self, claims: Sequence[DueClaim], now: datetime, conn: Connection) -> Fired:
        rows = lock_claimed_steps(conn, claims)
        if not rows:
            return Fired((), (), Counter())
        found = decide(conn, rows, now)
        runs = make_runs(conn, found.firing, now)
        hand_over(conn, runs.by_row, now=now)
        stops = [Settlement(row.id, row.version, status_of(stop), stop) for row, stop in found.stopped]
        settle_idle(conn, stops, now)
        passed(FaultPoint.IDLE_BEFORE_COMMIT)
        late = [now - row.due_at for row, _ in found.firing]
        return Fired(runs.woken, late, Counter(stop for _, stop in found.stopped))

    def _return_stuck(self) -> None:
        now = self._backends.clock.now()
        before = now - STUCK_AFTER
        with self._backends.database.read() as conn:
            stuck = stuck_steps(conn, before=before, most=CHOSEN)
        if stuck:
            back = self._backends.database.transact(
                lambda conn: return_steps(conn, stuck, before=before, now=now)
            )
            log.warning("idle_claims_returned", count=len(back))
