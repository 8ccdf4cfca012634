"""What is written of runs that a person cancels, one by one or with their automation: log lines and audit."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection

from shared.db.history import RunLog, insert_logs
from shared.model.moves import RunStatus
from shared.model.runs import LogLine
from shared.services.auditing import Deed, write_deeds
from shared.services.backends import Caller


class Stop(StrEnum):
    """What the run's log says: it had not begun, or it ends before its next action."""

    CANCELLED = "run cancelled"
    ASKED = "run asked to stop"


def note_stops(
    conn: Connection,
    caller: Caller,
    runs: Iterable[tuple[str, str | None]],
    how: tuple[Stop, str],
    now: datetime,
) -> None:
    """Write of each run, given by its id and its automation's, how it is stopped and the reason's code.

    Called in the transaction of the move, for the runs that it moved; a second call writes it a second time.
    """
    stop, reason = how
    stopped = list(runs)
    line = LogLine("info", stop, now, {"by": caller.actor, "reason": reason})
    insert_logs(
        conn, [RunLog(caller.workspace_id, automation_id, run_id, line) for run_id, automation_id in stopped]
    )
    before = RunStatus.PENDING if stop is Stop.CANCELLED else RunStatus.RUNNING
    more = {"reason": reason}
    deeds = [Deed("run.cancelled", run_id, before, stop, more) for run_id, _ in stopped]
    write_deeds(conn, caller, deeds, now)
