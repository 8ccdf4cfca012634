"""Idle steps that are due become runs, or say why not (docs/idle-sequences.md, "Firing").

A step that has a run is the run's from then on.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection
from typing_extensions import override

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
from shared.faults import FaultPoint, passed
from shared.keys import idle_key
from shared.logs import get_logger
from shared.model.idle_steps import IdleResult, IdleStop
from shared.rules.idling import status_of
from shared.services.backends import Backends
from shared.services.counting import count_up
from timers.idle_deciding import decide
from timers.idle_runs import make_runs
from timers.sweeping import DueSweep, Fired, Kind

STEPS: Final = Kind(
    choose=due_steps,
    claim=claim_steps,
    find_stuck=stuck_steps,
    give_back=return_steps,
    claimed=FaultPoint.IDLE_AFTER_CLAIM,
    committed=FaultPoint.IDLE_AFTER_COMMIT,
)

log: Final = get_logger("timers")


class IdleSweep(DueSweep):
    """Looks for idle steps that are due. It remembers nothing."""

    def __init__(self, backends: Backends) -> None:
        """Have measured nothing yet."""
        super().__init__(backends, STEPS)

    @override
    def write(self, claims: Sequence[DueClaim], now: datetime, conn: Connection) -> Fired:
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
        return Fired(runs.woken, late, Counter(stop.value for _, stop in found.stopped))

    @override
    def tell(self, fired: Fired) -> None:
        if fired.runs:
            log.info("idle_steps_due", count=len(fired.runs))
        if fired.ended:
            log.info("idle_steps_stopped", reasons=dict(fired.ended))
        resets = fired.ended[IdleStop.CUSTOMER_REPLIED]
        if resets:
            count_up(self._backends, {idle_key(self._backends.keys, IdleResult.RESET): resets})

    @override
    def tell_unsettled(self, row_id: str, reason: str) -> None:
        log.error("idle_step_not_settled", step_id=row_id, reason=reason)

    @override
    def tell_returned(self, count: int) -> None:
        log.warning("idle_claims_returned", count=count)
