"""Changes to automations: apply a file of them, activate, pause, delete. All of it is audited."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.automations import (
    AutomationRow,
    delete_automation,
    insert_automation,
    list_automations,
    update_automation,
)
from shared.db.endings import tell_of_ends
from shared.db.engine import Database
from shared.db.outbox import OutboxEntry
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
from shared.model.automation import Definition
from shared.model.statuses import AutomationStatus
from shared.rules.values import is_same_json
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Backends, Caller, announce_automations
from shared.services.cancelling import Stop, note_stops
from shared.services.definitions import Change, ChangeKind, Leftovers, plan_changes
from shared.services.emitting import try_to_send
from shared.services.references import check_workspace, lock_automation, no_workspace
from shared.services.schedules import keep_schedule
from shared.services.waking import redis_ms, wake

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


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What has to follow the commit of one change: runs to be woken, events to be sent."""

    woken: Sequence[WokenRun] = ()
    events: Sequence[OutboxEntry] = ()


@dataclass(frozen=True, slots=True)
class Turned:
    """What became of an automation that a person turned on or off."""

    row: AutomationRow
    changed: bool
    woken: int


def preview_changes(
    database: Database, caller: Caller, definitions: Sequence[Definition], leftovers: Leftovers
) -> list[Change]:
    """Say what `apply_changes` would do. Raises NotFound without the workspace."""
    with database.read() as conn:
        check_workspace(conn, caller.workspace_id)
        return plan_changes(list_automations(conn, caller.workspace_id), definitions, leftovers)


def apply_changes(
    backends: Backends, caller: Caller, definitions: Sequence[Definition], leftovers: Leftovers
) -> list[Change]:
    """Make the workspace's automations what the definitions say; a second call finds nothing to change.

    Events published after this returned are matched by what is ACTIVE. Raises NotFound without the workspace,
    and Unavailable without Redis if anything that is to be ACTIVE changes; then nothing does.
    """
    moment = _moment(backends)

    def work(conn: Connection) -> tuple[list[Change], list[Aftermath]]:
        _must_lock(conn, caller.workspace_id)
        changes = plan_changes(list_automations(conn, caller.workspace_id), definitions, leftovers)
        return changes, [_make(conn, caller, change, moment) for change in changes]

    changes, aftermaths = backends.database.transact(work)
    if any(change.kind is not ChangeKind.UNCHANGED for change in changes):
        announce_automations(backends)
    wake(backends, [run for each in aftermaths for run in each.woken], moment.now)
    try_to_send(backends, [event for each in aftermaths for event in each.events])
    return changes


def activate(backends: Backends, caller: Caller, reference: str) -> Turned:
    """Make an automation (key or id) ACTIVE, from now on and not for older events; its waiting runs go on."""
    return _turn(backends, caller, reference, AutomationStatus.ACTIVE)


def pause(backends: Backends, caller: Caller, reference: str) -> Turned:
    """Make an automation PAUSED: it matches nothing, and what waits stays where it is. Needs no Redis."""
    return _turn(backends, caller, reference, AutomationStatus.PAUSED)


def delete(backends: Backends, caller: Caller, reference: str) -> AutomationRow:
    """Delete an automation: what waits is cancelled, what runs stops, its history stays. Needs no Redis."""
    now = backends.clock.now()

    def work(conn: Connection) -> tuple[AutomationRow, Sequence[OutboxEntry]]:
        _must_lock(conn, caller.workspace_id)
        row = lock_automation(conn, caller.workspace_id, reference)
        return row, _remove(conn, caller, row, now)

    row, events = backends.database.transact(work)
    announce_automations(backends)
    try_to_send(backends, events)
    return row


def _moment(backends: Backends) -> Moment:
    try:
        return Moment(backends.clock.now(), redis_ms(backends))
    except Unavailable as error:
        return Moment(backends.clock.now(), error)


def _must_lock(conn: Connection, workspace_id: str) -> None:
    if not lock_workspace(conn, workspace_id):
        raise no_workspace(workspace_id)


def _turn(backends: Backends, caller: Caller, reference: str, to: AutomationStatus) -> Turned:
    moment = _moment(backends)

    def work(conn: Connection) -> tuple[AutomationRow, bool, list[WokenRun]]:
        _must_lock(conn, caller.workspace_id)
        row = lock_automation(conn, caller.workspace_id, reference)
        if row.status is to:
            return row, False, []
        turned, woken = _write(conn, row, _with_status(row.definition, to), moment)
        action = "automation.activated" if to is AutomationStatus.ACTIVE else "automation.paused"
        write_deed(conn, caller, Deed(action, row.id, {"status": row.status}, {"status": to}), moment.now)
        return turned, True, woken

    row, changed, woken = backends.database.transact(work)
    if changed:
        announce_automations(backends)
    wake(backends, woken, moment.now)
    return Turned(row, changed, len(woken))


def _make(conn: Connection, caller: Caller, change: Change, moment: Moment) -> Aftermath:
    match change.kind:
        case ChangeKind.UNCHANGED:
            return Aftermath()
        case ChangeKind.CREATED:
            row = _create(conn, caller, change.after or {}, moment)
            write_deed(conn, caller, Deed("automation.created", row.id, None, change.after), moment.now)
            return Aftermath()
        case ChangeKind.UPDATED:
            row = lock_automation(conn, caller.workspace_id, change.key)
            _, woken = _write(conn, row, change.after or {}, moment)
            deed = Deed("automation.updated", row.id, change.before, change.after)
            write_deed(conn, caller, deed, moment.now)
            return Aftermath(woken=woken)
        case ChangeKind.DELETED:
            row = lock_automation(conn, caller.workspace_id, change.key)
            return Aftermath(events=_remove(conn, caller, row, moment.now))


def _create(conn: Connection, caller: Caller, definition: Mapping[str, Any], moment: Moment) -> AutomationRow:
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


def _write(
    conn: Connection, row: AutomationRow, definition: Mapping[str, Any], moment: Moment
) -> tuple[AutomationRow, list[WokenRun]]:
    """Write a definition over a row; a status alone makes no new version. Give the runs that may go on."""
    status = AutomationStatus(definition["status"])
    becomes_active = status is AutomationStatus.ACTIVE and row.status is not AutomationStatus.ACTIVE
    stream_ms = moment.stream_ms() if status is AutomationStatus.ACTIVE else None
    is_new_version = not is_same_json(_with_status(row.definition, status), definition)
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


def _remove(conn: Connection, caller: Caller, row: AutomationRow, now: datetime) -> Sequence[OutboxEntry]:
    """Delete an automation; give the events that tell of the runs which this cancels."""
    delete_automation(conn, row.id, now=now)
    keep_schedule(conn, replace(row, deleted_at=now), now)
    cancelled = cancel_runs_of(conn, row.id, now=now)
    stopped = stop_runs_of(conn, row.id)
    ended = [(run.run_id, row.id) for run in cancelled]
    note_stops(conn, caller, ended, (Stop.CANCELLED, AUTOMATION_DELETED), now)
    note_stops(conn, caller, [(run_id, row.id) for run_id in stopped], (Stop.ASKED, AUTOMATION_DELETED), now)
    counts = {"runs_cancelled": len(cancelled), "runs_stopped": len(stopped)}
    write_deed(conn, caller, Deed("automation.deleted", row.id, row.definition, None, counts), now)
    return tell_of_ends(conn, cancelled, now=now)


def _with_status(definition: Mapping[str, Any], status: AutomationStatus) -> dict[str, Any]:
    return {**definition, "status": status.value}
