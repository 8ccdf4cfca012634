"""Changes to automations: apply a file of them, make one, edit it, turn it on or off, delete it; audited."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from shared.db.automations import AutomationRow, list_automations, lock_by_key
from shared.db.engine import Database
from shared.db.outbox import OutboxEntry
from shared.db.persons_moves import WokenRun
from shared.errors import Conflict, DefinitionError, Fault, Unavailable
from shared.model.automation import Definition, definition_to_json, parse_authored
from shared.model.statuses import AutomationStatus
from shared.rules.values import is_same_json
from shared.services.auditing import Deed, write_deed
from shared.services.automation_rows import (
    Moment,
    create_row,
    must_lock,
    remove_row,
    with_status,
    write_row,
)
from shared.services.backends import Backends, Caller, announce_automations
from shared.services.definitions import Change, ChangeKind, Leftovers, plan_changes
from shared.services.emitting import try_to_send
from shared.services.references import check_workspace, lock_automation
from shared.services.waking import redis_ms, wake


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


@dataclass(frozen=True, slots=True)
class Edit:
    """Keys of a definition and their new values; None takes a key away.

    `check_row` and `accept` raise what they find against the automation as it stands, and as it would stand.
    """

    keys: Mapping[str, Any]
    check_row: Callable[[AutomationRow], None]
    accept: Callable[[Definition], None]


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
        must_lock(conn, caller.workspace_id)
        changes = plan_changes(list_automations(conn, caller.workspace_id), definitions, leftovers)
        return changes, [_make(conn, caller, change, moment) for change in changes]

    changes, aftermaths = backends.database.transact(work)
    if any(change.kind is not ChangeKind.UNCHANGED for change in changes):
        announce_automations(backends)
    wake(backends, [run for each in aftermaths for run in each.woken], moment.now)
    try_to_send(backends, [event for each in aftermaths for event in each.events])
    return changes


def create(backends: Backends, caller: Caller, definition: Definition) -> AutomationRow:
    """Make an automation. Raises Conflict for a key that is taken, NotFound without the workspace."""
    moment = _moment(backends)

    def work(conn: Connection) -> AutomationRow:
        must_lock(conn, caller.workspace_id)
        if lock_by_key(conn, caller.workspace_id, definition.key) is not None:
            raise Conflict(f"there is an automation {definition.key!r} already")
        after = {**definition_to_json(definition), "status": definition.status.value}
        row = create_row(conn, caller, after, moment)
        write_deed(conn, caller, Deed("automation.created", row.id, None, after), moment.now)
        return row

    row = backends.database.transact(work)
    announce_automations(backends)
    return row


def edit(backends: Backends, caller: Caller, reference: str, wanted: Edit) -> AutomationRow:
    """Change keys of an automation's definition; a second call changes nothing.

    Raises NotFound, DefinitionError for what the keys would make of it, and what `wanted` raises.
    """
    moment = _moment(backends)

    def work(conn: Connection) -> tuple[AutomationRow, list[WokenRun], bool]:
        must_lock(conn, caller.workspace_id)
        row = lock_automation(conn, caller.workspace_id, reference)
        wanted.check_row(row)
        after = _edited(row, wanted)
        if is_same_json(row.definition, after):
            return row, [], False
        written, woken = write_row(conn, row, after, moment)
        write_deed(conn, caller, Deed("automation.updated", row.id, row.definition, after), moment.now)
        return written, woken, True

    row, woken, changed = backends.database.transact(work)
    if changed:
        announce_automations(backends)
    wake(backends, woken, moment.now)
    return row


def activate(backends: Backends, caller: Caller, reference: str) -> Turned:
    """Make an automation (key or id) ACTIVE, from now on and not for older events; its waiting runs go on."""
    return _turn(backends, caller, reference, AutomationStatus.ACTIVE)


def pause(backends: Backends, caller: Caller, reference: str) -> Turned:
    """Make an automation PAUSED: it matches nothing, and what waits stays where it is. Needs no Redis."""
    return _turn(backends, caller, reference, AutomationStatus.PAUSED)


def accept_any(_: object) -> None:
    """Find nothing against it."""


def delete(
    backends: Backends,
    caller: Caller,
    reference: str,
    check_row: Callable[[AutomationRow], None] = accept_any,
) -> AutomationRow:
    """Delete an automation: what waits is cancelled, what runs stops, its history stays. Needs no Redis."""
    now = backends.clock.now()

    def work(conn: Connection) -> tuple[AutomationRow, Sequence[OutboxEntry]]:
        must_lock(conn, caller.workspace_id)
        row = lock_automation(conn, caller.workspace_id, reference)
        check_row(row)
        return row, remove_row(conn, caller, row, now)

    row, events = backends.database.transact(work)
    announce_automations(backends)
    try_to_send(backends, events)
    return row


def _moment(backends: Backends) -> Moment:
    try:
        return Moment(backends.clock.now(), redis_ms(backends))
    except Unavailable as error:
        return Moment(backends.clock.now(), error)


def _turn(backends: Backends, caller: Caller, reference: str, to: AutomationStatus) -> Turned:
    moment = _moment(backends)

    def work(conn: Connection) -> tuple[AutomationRow, bool, list[WokenRun]]:
        must_lock(conn, caller.workspace_id)
        row = lock_automation(conn, caller.workspace_id, reference)
        if row.status is to:
            return row, False, []
        turned, woken = write_row(conn, row, with_status(row.definition, to), moment)
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
            row = create_row(conn, caller, change.after or {}, moment)
            write_deed(conn, caller, Deed("automation.created", row.id, None, change.after), moment.now)
            return Aftermath()
        case ChangeKind.UPDATED:
            row = lock_automation(conn, caller.workspace_id, change.key)
            _, woken = write_row(conn, row, change.after or {}, moment)
            deed = Deed("automation.updated", row.id, change.before, change.after)
            write_deed(conn, caller, deed, moment.now)
            return Aftermath(woken=woken)
        case ChangeKind.DELETED:
            row = lock_automation(conn, caller.workspace_id, change.key)
            return Aftermath(events=remove_row(conn, caller, row, moment.now))


def _edited(row: AutomationRow, wanted: Edit) -> dict[str, Any]:
    if wanted.keys.get("key", row.key) != row.key:
        raise DefinitionError([Fault("key", "cannot be changed; make another automation")])
    merged = {**row.definition, "status": row.status.value, **wanted.keys}
    definition = parse_authored({name: value for name, value in merged.items() if value is not None})
    wanted.accept(definition)
    return {"status": definition.status.value, **definition_to_json(definition)}
