"""Runs that wait though nothing will wake them: their handle is lost, so they are given another one.

Age alone cannot tell, since a run may wait for its backoff or in a long queue. But queues are first in, first
out: a handle is lost when its queue is empty, or has come to one that was pushed well after the run was due.
The new one has the instant of the row's new `enqueued_at`, so that a backlog gets no second set of handles.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from shared.db.history import RunLog, insert_logs
from shared.db.rescue import WaitingRun, touch_waiting, waiting_runs
from shared.logs import get_logger
from shared.model.runs import LogLine, QueueKind
from watchdog.parts import Parts

BATCH: Final = 500
ROUNDING: Final = timedelta(seconds=1)

log: Final = get_logger("watchdog")

Choice = Callable[[Sequence[WaitingRun]], list[WaitingRun]]


def requeue_lost(parts: Parts) -> None:
    """Give every run with a lost handle a new one. No retry is counted; a second call finds nothing left."""
    for kind in QueueKind:
        before = _passed_by(parts, kind)
        while _requeue(parts, kind, before, list) == BATCH:
            pass
        _requeue_stale(parts, kind)


def _passed_by(parts: Parts, kind: QueueKind) -> datetime:
    """Give the instant such that what was due before it has been passed by its queue."""
    head = parts.queue.head_pushed_at(kind)
    now = parts.clock.now()
    reached = now if head is None else min(now, head)
    return reached - timedelta(seconds=parts.settings.handle_lost_s)


def _requeue_stale(parts: Parts, kind: QueueKind) -> None:
    """Look, as the last resort, for old runs whose queue stands still and has no handle of theirs."""

    def not_held(waiting: Sequence[WaitingRun]) -> list[WaitingRun]:
        times = parts.queue.push_times(kind) if waiting else []
        span = timedelta(seconds=parts.settings.handle_lost_s)
        return [run for run in waiting if not _any_between(times, run.due_at - ROUNDING, run.due_at + span)]

    before = parts.clock.now() - timedelta(seconds=parts.settings.watchdog_stale_s)
    _requeue(parts, kind, before, not_held)


def _any_between(times: Sequence[datetime], first: datetime, last: datetime) -> bool:
    found = bisect_left(times, first)
    return found < len(times) and times[found] <= last


def _requeue(parts: Parts, kind: QueueKind, before: datetime, choose: Choice) -> int:
    """Give a batch of runs that were due before `before` a new handle; report how many were looked at."""
    with parts.database.read() as conn:
        waiting = waiting_runs(conn, kind, before=before, most=BATCH)
    lost = choose(waiting)
    if lost:
        now = parts.clock.now()
        ids = parts.database.transact(lambda conn: _touch(conn, kind, lost, now))
        parts.queue.push(kind, ids, now)
        log.warning("runs_requeued", queue=kind, count=len(ids))
    return len(waiting)


def _touch(conn: Connection, kind: QueueKind, lost: Sequence[WaitingRun], now: datetime) -> list[str]:
    touched = set(touch_waiting(conn, [run.id for run in lost], kind, now=now))
    kept = [run for run in lost if run.id in touched]
    insert_logs(conn, [_log(run, now) for run in kept])
    return [run.id for run in kept]


def _log(run: WaitingRun, now: datetime) -> RunLog:
    line = LogLine(
        "warning", "watchdog re-enqueued stale PENDING run", now, {"due_at": run.due_at.isoformat()}
    )
    return RunLog(run.workspace_id, run.automation_id, run.id, line)
