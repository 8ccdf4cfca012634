"""What a person does to what waits before it acts (docs/delayed.md): look at one, cancel one."""

from typing import Final

from sqlalchemy import Connection

from shared.db.history import RunLog, insert_logs
from shared.db.pending_moves import cancel_pending
from shared.db.pending_reads import PendingDetail, PendingSummary, find_pending
from shared.errors import ConfigError, Conflict, NotFound
from shared.keys import delayed_key
from shared.logs import get_logger
from shared.model.pending import PendingSkip, PendingStatus
from shared.model.runs import LogLine
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Backends, Caller
from shared.services.counting import count_up
from shared.services.references import check_workspace

log: Final = get_logger("pending")


def check_filters(status: PendingStatus | None, reason: PendingSkip | None) -> None:
    """Raise ConfigError for filters that exclude each other: only what was skipped has a reason."""
    if reason is not None and status not in (None, PendingStatus.SKIPPED):
        raise ConfigError(f"goes with the status {PendingStatus.SKIPPED} alone; what is {status} has none")


def get_pending(conn: Connection, caller: Caller, pending_id: str) -> PendingDetail:
    """Give one pending execution of the caller's workspace. Raises NotFound."""
    found = find_pending(conn, caller.workspace_id, pending_id)
    if found is None:
        check_workspace(conn, caller.workspace_id)
        raise NotFound(f"there is no pending execution {pending_id!r} in workspace {caller.workspace_id!r}")
    return found


def cancel_waiting(backends: Backends, caller: Caller, pending_id: str) -> PendingSummary:
    """Keep one that waits from firing; its episode is spent, so nothing arms it again before the next one.

    Raises NotFound, and Conflict for one that waits no more, as after a first call.
    """
    now = backends.clock.now()

    def work(conn: Connection) -> PendingSummary:
        before = get_pending(conn, caller, pending_id).row
        if not cancel_pending(conn, caller.workspace_id, pending_id, now=now):
            raise Conflict(
                f"the pending execution is {_standing(conn, caller, pending_id)}; it waits no more"
            )
        subject = f"{before.subject.type}:{before.subject.id}"
        told = {"by": caller.actor, "pending": pending_id, "subject": subject}
        line = LogLine("info", "pending execution cancelled", now, told)
        insert_logs(conn, [RunLog(caller.workspace_id, before.automation_id, None, line)])
        more = {"automation_id": before.automation_id, "subject": subject, "reason": PendingSkip.CANCELLED}
        deed = Deed(
            "pending_execution.cancelled", pending_id, PendingStatus.PENDING, PendingStatus.SKIPPED, more
        )
        write_deed(conn, caller, deed, now)
        return get_pending(conn, caller, pending_id).row

    row = backends.database.transact(work)
    count_delayed(backends, f"skipped:{PendingSkip.CANCELLED}", 1)
    log.info("pending_cancelled", pending_id=pending_id, automation_id=row.automation_id)
    return row


def count_delayed(backends: Backends, name: str, times: int) -> None:
    """Raise a counter of what becomes of pending executions, if Redis can be reached."""
    count_up(backends, {delayed_key(backends.keys, name): times})


def _standing(conn: Connection, caller: Caller, pending_id: str) -> str:
    row = get_pending(conn, caller, pending_id).row
    return f"{row.status} ({row.skip_reason})" if row.skip_reason else row.status.value
