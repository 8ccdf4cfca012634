"""Pending executions that are due become runs, or say why not (docs/delayed.md, "Firing")."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection
from typing_extensions import override

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
from shared.faults import FaultPoint, passed
from shared.keys import delayed_key
from shared.logs import get_logger
from shared.model.pending import PendingSkip
from shared.services.backends import Backends
from shared.services.counting import count_up
from shared.services.standing import Rules
from timers.delayed_deciding import decide
from timers.delayed_runs import arm_anew, make_runs
from timers.sweeping import DueSweep, Fired, Kind

PENDING: Final = Kind(
    choose=due_rows,
    claim=claim_due,
    find_stuck=stuck_claims,
    give_back=return_stuck,
    claimed=FaultPoint.DELAYED_AFTER_CLAIM,
    committed=FaultPoint.DELAYED_AFTER_COMMIT,
)

log: Final = get_logger("timers")


class DelayedSweep(DueSweep):
    """Looks for pending executions that are due. It remembers compiled conditions, and nothing else."""

    def __init__(self, backends: Backends, expiry: timedelta) -> None:
        """Know no conditions yet; what is due for longer than `expiry` does not fire."""
        super().__init__(backends, PENDING)
        self._expiry = expiry
        self._rules = Rules()

    @override
    def write(self, claims: Sequence[DueClaim], now: datetime, conn: Connection) -> Fired:
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
            Counter(reason.value for _, reason in found.skipped),
            [each.id for each, reason in found.skipped if reason is PendingSkip.UNREADABLE],
        )

    @override
    def tell(self, fired: Fired) -> None:
        if fired.runs:
            log.info("delayed_fired", count=len(fired.runs))
        if fired.ended:
            log.info("delayed_skipped", reasons=dict(fired.ended))
        for pending_id in fired.unreadable:
            log.error("delayed_unreadable", pending_id=pending_id)
        keys = self._backends.keys
        counts = Counter({delayed_key(keys, f"skipped:{why}"): n for why, n in fired.ended.items()})
        counts[delayed_key(keys, "executed")] += len(fired.runs)
        count_up(self._backends, +counts)

    @override
    def tell_unsettled(self, row_id: str, reason: str) -> None:
        log.error("delayed_not_settled", pending_id=row_id, reason=reason)

    @override
    def tell_returned(self, count: int) -> None:
        log.warning("delayed_claims_returned", count=count)
