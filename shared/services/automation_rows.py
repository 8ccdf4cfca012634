"""Automations as rows: made, written over, removed, each with its schedule, inside somebody's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.automations import AutomationRow, delete_automation, insert_automation, update_automation
from shared.db.endings import tell_of_ends
from shared.db.outbox import OutboxEntry
from shared.db.pending_moves import delete_pending_of
from shared.db.persons_moves import (
    AUTOMATION_DELETED,
    WokenRun,
    cancel_runs_of,
    lock_workspace,
    stop_runs_of,
    wake_runs_of,
)
from shared.errors import Unavailable
from shared.ids import new_id
from shared.model.statuses import AutomationStatus
from shared.rules.values import is_same_json
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Caller
from shared.services.cancelling import Stop, note_stops
from shared.services.references import no_workspace
from shared.services.schedules import keep_schedule

WOKEN_AT_ONCE: Final = 5_000


@dataclass(frozen=True, slots=True)
class Moment:
    """When a change is made: by our clock, and by that of Redis, which also stamps the events.

    Only what is to be ACTIVE needs Redis: its time, and that matchers hear of it before the next event. What
    is paused or deleted may also be found by their own poll.
    """

    now: datetime
    stream: int | Unavailable

    def stream_ms(self) -> int:
        """Give the time of Redis. Raises Unavailable if it did not answer."""
        if isinstance(self.stream, Unavailable):
            raise self.stream
        return self.stream


def must_lock(conn: Connection, workspace_id: str) -> None:
    """Let no other change to a workspace's automations in until the end. Raises NotFound."""
    if not lock_workspace(conn, workspace_id):
        raise no_workspace(workspace_id)


def create_row(
    conn: Connection, caller: Caller, definition: Mapping[str, Any], moment: Moment
) -> AutomationRow:
    """Make an automation; its key must be free."""
    status = AutomationStatus(definition["status"])
    row = AutomationRow(
        id=new_id(),
        workspace_id=caller.workspace_id,
        key=definition["key"],
        name=definition["name"],
        status=status,
        version=1,
        definition=definition,
        activated_ms=moment.stream_ms() if status is AutomationStatus.ACTIVE else None,
        created_at=moment.now,
        updated_at=moment.now,
        deleted_at=None,
    )
    insert_automation(conn, row)
    keep_schedule(conn, row, moment.now)
    return row


def write_row(
    conn: Connection, row: AutomationRow, definition: Mapping[str, Any], moment: Moment
) -> tuple[AutomationRow, list[WokenRun]]:
    """Write a definition over a row; a status alone makes no new version. Give the runs that may go on."""
    status = AutomationStatus(definition["status"])
    becomes_active = status is AutomationStatus.ACTIVE and row.status is not AutomationStatus.ACTIVE
    stream_ms = moment.stream_ms() if status is AutomationStatus.ACTIVE else None
    is_new_version = not is_same_json(with_status(row.definition, status), definition)
    written = replace(
        row,
        name=definition["name"],
        status=status,
        version=row.version + 1 if is_new_version else row.version,
        definition=definition,
        activated_ms=stream_ms if becomes_active else row.activated_ms,
        updated_at=moment.now,
    )
    update_automation(conn, written)
    keep_schedule(conn, written, moment.now)
    if not becomes_active:
        return written, []
    return written, wake_runs_of(conn, row.id, now=moment.now, most=WOKEN_AT_ONCE)


def remove_row(conn: Connection, caller: Caller, row: AutomationRow, now: datetime) -> Sequence[OutboxEntry]:
    """Delete an automation; give the events that tell of the runs which this cancels."""
    delete_automation(conn, row.id, now=now)
    keep_schedule(conn, replace(row, deleted_at=now), now)
    cancelled = cancel_runs_of(conn, row.id, now=now)
    stopped = stop_runs_of(conn, row.id)
    ended = [(run.run_id, row.id) for run in cancelled]
    note_stops(conn, caller, ended, (Stop.CANCELLED, AUTOMATION_DELETED), now)
    note_stops(conn, caller, [(run_id, row.id) for run_id in stopped], (Stop.ASKED, AUTOMATION_DELETED), now)
    counts = {
        "runs_cancelled": len(cancelled),
        "runs_stopped": len(stopped),
        "pending_deleted": delete_pending_of(conn, row.id),
    }
    write_deed(conn, caller, Deed("automation.deleted", row.id, row.definition, None, counts), now)
    return tell_of_ends(conn, cancelled, now=now)


def with_status(definition: Mapping[str, Any], status: AutomationStatus) -> dict[str, Any]:
    """Give a definition with this status."""
    return {**definition, "status": status.value}
