"""A run under which a worker died is driven alone, in a child process: if it kills again, it dies alone.

The child is spawned, never forked: `python -P -m pipeline.solo_child RUN_ID LEASE`. The parent keeps the
lease, waits, and when the child dies writes what it saw of the death. The third crash makes the run a dead
letter.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipeline.held import HeldRun, HeldRuns
from pipeline.parts import Parts
from shared.db.claims import lock_claims
from shared.db.dead_letters import DeadLetter, DeadLetterKind, record_dead_letters
from shared.db.history import Attempt, RunLog, insert_attempts, insert_logs
from shared.db.rescue import bury_runs, rescue_runs
from shared.model.executed import duration_ms
from shared.model.runs import WORKER_CRASHED, LogLine, RunError
from shared.redis_port import REDIS_ERRORS

log = structlog.get_logger(__name__)

ROOMS: Final = Path(__file__).resolve().parents[1]
IN_CHILD: Final = "KNOCKON_SOLO"


class Solo:
    """Drives suspect runs in children of this process, one thread a child."""

    def __init__(self, parts: Parts, held: HeldRuns) -> None:
        """Start nothing yet."""
        self._parts = parts
        self._held = held
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()

    def is_child(self) -> bool:
        """Tell whether this process is itself such a child."""
        return IN_CHILD in os.environ

    def drive(self, held: HeldRun) -> None:
        """Start a child for the run, and a thread that waits for it."""
        if self._held.begin(held):
            threading.Thread(target=self._watch, args=(held,), name="solo", daemon=True).start()

    def stop(self) -> None:
        """Ask every child to hand its run back."""
        with self._lock:
            children = list(self._children)
        for child in children:
            child.terminate()

    def _watch(self, held: HeldRun) -> None:
        claim = held.run.claim
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "pipeline.solo_child", claim.run_id, str(claim.lease)],
            env={**os.environ, "PYTHONPATH": str(ROOMS), IN_CHILD: "1"},
        )
        with self._lock:
            self._children.add(child)
        code = child.wait()
        with self._lock:
            self._children.discard(child)
        if code != 0:
            self._record_death(held, cause_of(code))
        self._held.drop(claim.run_id)

    def _record_death(self, held: HeldRun, cause: str) -> None:
        log.warning("solo_run_died", run_id=held.run.claim.run_id, cause=cause)
        try:
            wakes = self._parts.database.transact(lambda conn: self._write_death(conn, held, cause))
            if wakes:
                self._parts.queue.push(held.run.queue, [held.run.claim.run_id], self._parts.clock.now())
        except (DBAPIError, *REDIS_ERRORS) as error:
            log.warning("solo_death_left_to_watchdog", error=type(error).__name__)

    def _write_death(self, conn: Connection, held: HeldRun, cause: str) -> bool:
        """Write a crash; True when the run goes back to PENDING.

        Nothing happens where the child had written its end.
        """
        run, now = held.run, self._parts.clock.now()
        if run.claim.run_id not in lock_claims(conn, [run.claim]):
            return False
        error = RunError(WORKER_CRASHED, f"the run's process died: {cause}", None)
        insert_attempts(conn, [Attempt(run.claim, "crashed", error, self._parts.owner, run.started_at, now)])
        settings = self._parts.settings
        if run.crash_count + 1 < settings.run_max_crashes and run.failures < settings.auto_run_max_retries:
            line = LogLine("warning", "run crashed", now, {"cause": cause})
            insert_logs(conn, [RunLog(run.workspace_id, run.automation_id, run.claim.run_id, line)])
            rescue_runs(conn, [run.claim], now=now)
            return True
        bury_runs(conn, [(run.claim, error)], now=now)
        letter = DeadLetter(
            run_id=run.claim.run_id,
            workspace_id=run.workspace_id,
            automation_id=run.automation_id,
            automation_name=held.plan.name,
            error=error,
            attempts=run.retry_count + 1,
            trigger_type=run.trigger_type,
            depth=run.depth,
            root_run_id=run.root_run_id,
            duration_ms=duration_ms(run.started_at, now),
            kind=DeadLetterKind.CRASHED,
        )
        record_dead_letters(conn, [letter], now=now)
        return False


def cause_of(code: int) -> str:
    """Name how a process ended: its signal, or its exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
