"""Runs of idle steps that end without their worker: cancelled by a person, or given up after crashes."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.idle_acts import steps_of_runs
from shared.db.idle_steps import Settlement, settle_idle
from shared.model.idle_steps import IdleStatus, IdleStop

End = tuple[IdleStatus, IdleStop | None]
CANCELLED: Final[End] = (IdleStatus.STOPPED, IdleStop.CANCELLED)
GIVEN_UP: Final[End] = (IdleStatus.FAILED, None)


def end_steps(conn: Connection, run_ids: Iterable[str], end: End, now: datetime) -> int:
    """End the steps of those of these runs that are of one, in the transaction that ends the runs.

    Tell how many there were. A second call ends none.
    """
    steps = steps_of_runs(conn, run_ids)
    if not steps:
        return 0
    return len(settle_idle(conn, [Settlement(id_, None, *end) for id_ in sorted(steps.values())], now))
