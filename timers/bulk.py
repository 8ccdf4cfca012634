"""Confirmed bulk operations are done: batch by batch, each one a transaction with the operation's own row.

Any number of processes may be at it. One that finds an operation held or moved on leaves it, and a process
that dies in the middle leaves the operation at its last commit: the next pass goes on from there. No run has
a second turn, since each batch begins beyond the last one and takes only runs that are as the preview saw
them. Handles that are lost with a process are made up for by the watchdog.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from shared.db.bulk import BulkOperation, going_operations, move_operation, take_operation
from shared.db.bulk_runs import SelectedRun, find_selected, lock_selected
from shared.db.endings import tell_of_ends
from shared.db.engine import is_outage
from shared.db.history import AuditEntry, RunLog, insert_audit, insert_logs
from shared.db.outbox import OutboxEntry
from shared.db.persons_moves import CANCELLED, WokenRun, cancel_runs, forget_actions, replay_runs
from shared.db.runs_new import count_waiting
from shared.faults import FaultPoint, passed
from shared.logs import get_logger
from shared.model.bulk import BulkKind, BulkStatus, Passed
from shared.model.runs import LogLine, queue_for
from shared.services import idle_ends
from shared.services.backends import Backends
from shared.services.cancelling import Stop
from shared.services.emitting import try_to_send
from shared.services.idle_ends import end_steps
from shared.services.runs import ReplayFrom
from shared.services.waking import wake

BATCH: Final = 500
TURN_S: Final = 0.5  # schedules of the same process wait for no longer than this and one batch
AT_ONCE: Final = 20
REASON_CHARS: Final = 200

log: Final = get_logger("timers")


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction did: how the operation stands, runs to wake, ends to tell of."""

    operation: BulkOperation
    woken: Sequence[WokenRun]
    events: Sequence[OutboxEntry]


class BulkWork:
    """Moves on what is going, each operation a batch at a time, in turns of half a second."""

    def __init__(self, backends: Backends) -> None:
        """Know of none yet: the rows do."""
        self._backends = backends

    def pass_once(self) -> None:
        """Do batches until the turn is over or nothing is left. A second pass goes on from there."""
        clock = self._backends.clock
        until = clock.monotonic() + TURN_S
        while operations := self.going():
            moved = [self._try_to_move(operation) for operation in operations]
            if not any(moved) or clock.monotonic() >= until:
                return

    def going(self) -> Sequence[BulkOperation]:
        """Give the operations that have runs to do, a few of them: first those that waited longest."""
        with self._backends.database.read() as conn:
            return going_operations(conn, most=AT_ONCE)

    def move_on(self, seen: BulkOperation) -> bool:
        """Do the next batch of an operation; False where another process has it or it was cancelled."""
        with self._backends.database.read() as conn:
            ids = find_selected(conn, seen.selection, after_id=seen.after_id, most=BATCH)
        return self.settle(seen, ids)

    def settle(self, seen: BulkOperation, ids: Sequence[str]) -> bool:
        """Do a batch of the runs that were found next; what has moved since is left alone and counted."""
        now = self._backends.clock.now()
        batch = self._backends.database.transact(lambda conn: _write(conn, seen, ids, now))
        if batch is None:
            return False
        passed(FaultPoint.BULK_AFTER_COMMIT)
        wake(self._backends, batch.woken, now)
        try_to_send(self._backends, batch.events)
        if batch.operation.status is BulkStatus.DONE:
            done, left = batch.operation.done, batch.operation.passed
            log.info("bulk_operation_done", operation_id=seen.id, done=done, skipped=left)
        return True

    def _try_to_move(self, seen: BulkOperation) -> bool:
        """Move an operation on; one that SQL does not take keeps none of the others from their turn."""
        try:
            return self.move_on(seen)
        except DBAPIError as error:
            if is_outage(error):
                raise
            log.error("bulk_operation_failed", operation_id=seen.id, reason=str(error.orig)[:REASON_CHARS])
            return False


def _write(conn: Connection, seen: BulkOperation, ids: Sequence[str], now: datetime) -> Batch | None:
    held = take_operation(conn, seen)
    if held is None:
        return None
    runs = lock_selected(conn, held.selection, ids)
    skipped = Counter({Passed.MOVED_MEANWHILE: len(ids) - len(runs)})
    woken: Sequence[WokenRun] = ()
    events: Sequence[OutboxEntry] = ()
    match held.kind:
        case BulkKind.REPLAY:
            skipped[Passed.AUTOMATION_DELETED] = sum(run.is_orphan for run in runs)
            woken = _replay(conn, held, [run for run in runs if not run.is_orphan], now)
        case BulkKind.CANCEL:
            events = _cancel(conn, held, runs, now)
    after = held.moved(ids[-1] if ids else held.after_id, len(ids) - skipped.total(), skipped, now)
    if len(ids) < BATCH:
        after = after.ended(now)
        _audit_end(conn, after, now)
    move_operation(conn, held, after)
    passed(FaultPoint.BULK_BEFORE_COMMIT)
    return Batch(after, woken, events)


def _replay(
    conn: Connection, held: BulkOperation, runs: Sequence[SelectedRun], now: datetime
) -> Sequence[WokenRun]:
    """Put locked runs back to PENDING, in the queue that the workspace's backlog leaves to them."""
    if not runs:
        return ()
    waiting = count_waiting(conn, [held.workspace_id])[held.workspace_id]
    woken = replay_runs(conn, [run.id for run in runs], now=now, queue=queue_for(waiting + len(runs)))
    if held.start == ReplayFrom.START:
        forget_actions(conn, [run.id for run in woken])
    _log(conn, held, runs, LogLine("info", "run replayed", now, {**_by(held), "from": held.start}))
    return woken


def _cancel(
    conn: Connection, held: BulkOperation, runs: Sequence[SelectedRun], now: datetime
) -> Sequence[OutboxEntry]:
    ended = cancel_runs(conn, [run.id for run in runs], now=now)
    end_steps(conn, [run.run_id for run in ended], idle_ends.CANCELLED, now)
    _log(conn, held, runs, LogLine("info", Stop.CANCELLED, now, {**_by(held), "reason": CANCELLED}))
    return tell_of_ends(conn, ended, now=now)


def _by(held: BulkOperation) -> dict[str, str | None]:
    return {"by": held.confirmed_by, "bulk": held.id}


def _log(conn: Connection, held: BulkOperation, runs: Sequence[SelectedRun], line: LogLine) -> None:
    insert_logs(conn, [RunLog(held.workspace_id, run.automation_id, run.id, line) for run in runs])


def _audit_end(conn: Connection, ended: BulkOperation, now: datetime) -> None:
    detail = {"before": None, "after": {"done": ended.done, "skipped": ended.skipped, "filter": ended.filter}}
    entry = AuditEntry(
        workspace_id=ended.workspace_id,
        actor=f"SYSTEM bulk_operation:{ended.id}",
        action="bulk_operation.done",
        resource_type="bulk_operation",
        resource_id=ended.id,
        detail=detail,
    )
    insert_audit(conn, [entry], now=now)
