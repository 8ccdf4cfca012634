"""What a person does to many runs at once: a preview that counts, a confirmation, a look, an end midway.

An operation is a row; the `timers` process does what was confirmed (docs/automations.md, "Replaying many").
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.bulk import (
    BulkOperation,
    Preview,
    cancel_operation,
    confirm_operation,
    find_operation,
    insert_preview,
    lock_operation,
)
from shared.db.bulk_runs import Selection, count_selected, newest_run
from shared.db.types import write_instant
from shared.errors import Conflict, NotFound
from shared.ids import new_id
from shared.masking import mask_tree
from shared.model.bulk import BulkKind, BulkStatus, BulkWish
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Backends, Caller
from shared.services.references import check_workspace, find_ever_automation
from shared.services.runs import ReplayFrom

COUNTED: Final = 100_000


def preview(backends: Backends, caller: Caller, wish: BulkWish) -> BulkOperation:
    """Count the runs that a wish is about, and store it as an operation that does nothing yet.

    Raises NotFound for an unknown workspace or automation. Each call makes an operation.
    """
    with backends.database.read() as conn:
        found = _look(conn, caller, wish, backends)
    return backends.database.transact(lambda conn: _store(conn, caller, found))


def start_bulk(backends: Backends, caller: Caller, wish: BulkWish) -> BulkOperation:
    """Preview a wish and confirm it, both or none. Raises as `preview` does; each call makes an operation."""
    with backends.database.read() as conn:
        found = _look(conn, caller, wish, backends)

    def work(conn: Connection) -> BulkOperation:
        return _confirm(conn, caller, _store(conn, caller, found), found.selection.at)

    return backends.database.transact(work)


def confirm(backends: Backends, caller: Caller, operation_id: str) -> BulkOperation:
    """Let a previewed operation begin; one that has begun or is done is given as it is, unchanged.

    Raises NotFound, and Conflict for one that was cancelled.
    """
    now = backends.clock.now()

    def work(conn: Connection) -> BulkOperation:
        held = _must_lock(conn, caller, operation_id)
        if held.status is BulkStatus.CANCELLED:
            raise Conflict("the operation was cancelled; make a new one")
        return _confirm(conn, caller, held, now)

    return backends.database.transact(work)


def cancel_bulk(backends: Backends, caller: Caller, operation_id: str) -> BulkOperation:
    """End an operation where it stands: what was done stays done, the rest is left untouched.

    A second call changes nothing. Raises NotFound, and Conflict for one that is done.
    """
    now = backends.clock.now()

    def work(conn: Connection) -> BulkOperation:
        held = _must_lock(conn, caller, operation_id)
        if held.status is BulkStatus.DONE:
            raise Conflict("the operation is DONE; there is nothing left to cancel")
        cancelled = cancel_operation(conn, held.id, now=now)
        if cancelled is None:
            return held
        deed = Deed("bulk_operation.cancelled", held.id, _state(held), _told(cancelled))
        write_deed(conn, caller, deed, now)
        return cancelled

    return backends.database.transact(work)


def show_bulk(conn: Connection, workspace_id: str, operation_id: str) -> BulkOperation:
    """Give one operation of a workspace as it stands. Raises NotFound."""
    return _there(conn, workspace_id, operation_id, find_operation(conn, workspace_id, operation_id))


def document_of(operation: BulkOperation) -> dict[str, Any]:
    """Write an operation as people's programs read it. `more`: the preview found more than `total`."""
    return {
        "id": operation.id,
        "kind": operation.kind,
        "status": operation.status,
        "filter": mask_tree(operation.filter),
        "from_start": operation.start == ReplayFrom.START,
        "total": operation.total,
        "more": operation.is_more,
        "done": operation.done,
        "skipped": operation.skipped,
        "created_by": operation.created_by,
        "created_at": operation.created_at,
        "confirmed_by": operation.confirmed_by,
        "confirmed_at": operation.confirmed_at,
        "ended_at": operation.ended_at,
    }


def _store(conn: Connection, caller: Caller, found: Preview) -> BulkOperation:
    insert_preview(conn, found)
    made = show_bulk(conn, caller.workspace_id, found.id)
    write_deed(conn, caller, Deed("bulk_operation.created", made.id, None, _told(made)), made.created_at)
    return made


def _confirm(conn: Connection, caller: Caller, held: BulkOperation, now: datetime) -> BulkOperation:
    confirmed = confirm_operation(conn, held.id, caller.actor, now=now)
    if confirmed is None:
        return held
    deed = Deed("bulk_operation.confirmed", held.id, _state(held), _told(confirmed))
    write_deed(conn, caller, deed, now)
    return confirmed


def _look(conn: Connection, caller: Caller, wish: BulkWish, backends: Backends) -> Preview:
    check_workspace(conn, caller.workspace_id)
    selection, shown = _selected(conn, caller, wish, backends)
    counted = count_selected(conn, selection, most=COUNTED)
    start = ReplayFrom.START if wish.from_start else ReplayFrom.FAILED_ACTION
    return Preview(
        id=new_id(),
        selection=selection,
        kind=wish.kind,
        filter=shown,
        start=start if wish.kind is BulkKind.REPLAY else None,
        total=counted.count,
        is_more=counted.is_more,
        created_by=caller.actor,
    )


def _selected(
    conn: Connection, caller: Caller, wish: BulkWish, backends: Backends
) -> tuple[Selection, Mapping[str, Any]]:
    wanted = wish.filter
    automation = (
        find_ever_automation(conn, caller.workspace_id, wanted.automation) if wanted.automation else None
    )
    selection = Selection(
        workspace_id=caller.workspace_id,
        status=wish.status,
        at=backends.clock.now(),
        until_id=newest_run(conn, caller.workspace_id),
        automation_id=automation.id if automation else None,
        fingerprint=wanted.fingerprint,
        code=wanted.code,
        since=wanted.since,
        until=wanted.until,
    )
    shown = {
        "status": wish.status,
        "automation": automation.key if automation else None,
        "automation_id": selection.automation_id,
        "fingerprint": selection.fingerprint,
        "code": selection.code,
        "from": wanted.since and write_instant(wanted.since),
        "to": wanted.until and write_instant(wanted.until),
    }
    return selection, {name: value for name, value in shown.items() if value is not None}


def _must_lock(conn: Connection, caller: Caller, operation_id: str) -> BulkOperation:
    held = lock_operation(conn, caller.workspace_id, operation_id)
    return _there(conn, caller.workspace_id, operation_id, held)


def _there(
    conn: Connection, workspace_id: str, operation_id: str, found: BulkOperation | None
) -> BulkOperation:
    if found is None:
        check_workspace(conn, workspace_id)
        raise NotFound(f"there is no bulk operation {operation_id!r} in workspace {workspace_id!r}")
    return found


def _state(operation: BulkOperation) -> Mapping[str, Any]:
    return {"status": operation.status}


def _told(operation: BulkOperation) -> Mapping[str, Any]:
    """Say what the audit keeps of an operation: what it is about, and how far it has come."""
    return {
        "status": operation.status,
        "kind": operation.kind,
        "filter": operation.filter,
        "start": operation.start,
        "total": operation.total,
        "more": operation.is_more,
        "done": operation.done,
        "skipped": operation.skipped,
    }
