"""The safety net under the schedules: the set difference between them and the automations that want one.

Each change of an automation keeps its schedule in its own transaction. What another version, a restored
backup or a hand in the database left out of step is put right here, at the start and every few minutes.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from shared.db.automations import lock_automations
from shared.db.schedules import differing_automations, standing_schedules
from shared.logs import get_logger
from shared.services.backends import Backends
from shared.services.schedules import Kept, keep_schedules

EVERY_S: Final = 300.0
LATE: Final = timedelta(seconds=60)
BATCH: Final = 500
NAMED: Final = 10

log: Final = get_logger("timers")


def reconcile(backends: Backends) -> None:
    """Put schedules right that are missing, other than written, or too many; tell of those that stand still.

    A second call finds nothing to change.
    """
    now = backends.clock.now()
    with backends.database.read() as conn:
        ids = differing_automations(conn)
    kept = Kept()
    for begin in range(0, len(ids), BATCH):
        kept += _put_right(backends, ids[begin : begin + BATCH], now)
    if kept:
        log.warning("schedules_reconciled", made=kept.made, edited=kept.edited, dropped=kept.dropped)
    with backends.database.read() as conn:
        standing = standing_schedules(conn, before=now - LATE, most=NAMED)
    if standing:
        log.error("schedules_stand_still", automations=[each.automation_id for each in standing])


def _put_right(backends: Backends, ids: Sequence[str], now: datetime) -> Kept:
    def work(conn: Connection) -> Kept:
        return keep_schedules(conn, ids, lock_automations(conn, ids), now)

    return backends.database.transact(work)
