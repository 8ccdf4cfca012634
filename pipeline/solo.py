"""A run under which a worker died is driven alone, in a child process: if it kills again, it dies alone.

The child is spawned, never forked: `python -P -m worker.solo_child RUN_ID LEASE`. The parent keeps the
lease, waits, and when the child dies writes what it saw of the death. The third crash makes the run a dead
letter.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipeline.held import HeldRun, HeldRuns, Phase
from pipeline.parts import Parts
from shared.db.claims import lock_claims
from shared.db.dead_letters import DeadLetter, DeadLetterKind, record_dead_letters
from shared.db.history import Attempt, RunLog, insert_attempts, insert_logs
from shared.db.rescue import bury_runs, rescue_runs
from shared.db.settle import release_runs
from shared.keys import idle_key
from shared.logs import get_logger
from shared.model.idle_steps import IdleResult
from shared.model.runs import WORKER_CRASHED, Claim, ClaimedRun, HandedBack, LogLine, RunError
from shared.redis_port import REDIS_ERRORS
from shared.services.idle_ends import GIVEN_UP, end_steps

log = get_logger("pipeline")

ROOMS: Final = Path(__file__).resolve().parents[1]
IN_CHILD: Final = "KNOCKON_SOLO"
AT_ONCE: Final = 2

Follow = Callable[[], object]


class Solo:
    """Drives suspect runs in children of this process, two at a time; the others wait under their lease."""

    def __init__(self, parts: Parts, held: HeldRuns) -> None:
        """Start nothing yet."""
        self._parts = parts
        self._held = held
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._ending = False
        self._places = threading.Semaphore(AT_ONCE)

    def is_child(self) -> bool:
        """Tell whether this process is itself such a child."""
        return IN_CHILD in os.environ

    def drive(self, held: HeldRun) -> None:
        """Start a child for the run, and a thread that waits for it."""
        if self._held.resume(held, Phase.WAITING):
            threading.Thread(target=self._watch, args=(held,), name="solo", daemon=True).start()

    def stop(self) -> None:
        """Ask every child to hand its run back."""
        with self._lock:
            self._ending = True
            for child in self._children:
                child.terminate()

    def _watch(self, held: HeldRun) -> None:
        try:
            with self._places:
                code = self._wait_for(held.run.claim)
            if code == -signal.SIGTERM and self._ending:
                self._write(partial(self._write_hand_back, held))
            elif code != 0:
                log.warning("solo_run_died", run_id=held.run.claim.run_id, cause=cause_of(code))
                self._write(partial(self._write_death, held, cause_of(code)))
        except OSError as error:
            log.error("solo_child_not_started", run_id=held.run.claim.run_id, error=str(error))
        finally:
            self._held.drop(held.run.claim)

    def _wait_for(self, claim: Claim) -> int:
        """Start a child and give the code with which it ended."""
        with self._lock:
            if self._ending:
                return -signal.SIGTERM
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", self._parts.child_module, claim.run_id, str(claim.lease)],
                env={**os.environ, "PYTHONPATH": _path(), IN_CHILD: "1"},
            )
            self._children.add(child)
        code = child.wait()
        with self._lock:
            self._children.discard(child)
        return code

    def _write(self, work: Callable[[Connection], Follow]) -> None:
        """Write what became of a run, then do what follows from it."""
        try:
            self._parts.database.transact(work)()
        except (DBAPIError, *REDIS_ERRORS) as error:
            log.warning("solo_end_left_to_watchdog", error=type(error).__name__)

    def _write_hand_back(self, held: HeldRun, conn: Connection) -> Follow:
        """Leave the run to another process: the child ended on our word before it could do so itself."""
        run, now = held.run, self._parts.clock.now()
        if run.claim.run_id not in lock_claims(conn, [run.claim]):
            return _nothing
        release_runs(conn, [(run.claim, HandedBack(now))], now=now)
        attempt = Attempt(run.claim, "handed_back", None, self._parts.owner, run.started_at, now)
        insert_attempts(conn, [attempt])
        return partial(self._wake, run, now)

    def _write_death(self, held: HeldRun, cause: str, conn: Connection) -> Follow:
        """Write a crash, unless the child had written its end.

        The counts are those of the row, which the child may have started anew by an action that succeeded.
        """
        run, now = held.run, self._parts.clock.now()
        stands = lock_claims(conn, [run.claim]).get(run.claim.run_id)
        if stands is None:
            return _nothing
        error = RunError(WORKER_CRASHED, f"the run's process died: {cause}", None)
        insert_attempts(conn, [Attempt(run.claim, "crashed", error, self._parts.owner, run.started_at, now)])
        settings = self._parts.settings
        crashes = stands.crash_count + 1
        if crashes < settings.run_max_crashes and stands.failures < settings.auto_run_max_retries:
            line = LogLine("warning", "run crashed", now, {"cause": cause, "crashes": crashes})
            insert_logs(conn, [RunLog(run.workspace_id, run.automation_id, run.claim.run_id, line)])
            rescue_runs(conn, [run.claim], now=now)
            return partial(self._wake, run, now)
        bury_runs(conn, [(run.claim, error)], now=now)
        given_up = end_steps(conn, [run.claim.run_id], GIVEN_UP, now)
        letter = DeadLetter.of(run, held.plan.name, error, DeadLetterKind.CRASHED, now)
        record_dead_letters(conn, [letter], now=now)
        return partial(self._count, run, given_up)

    def _count(self, run: ClaimedRun, given_up: int) -> None:
        keys = self._parts.keys
        self._parts.redis.incr(keys.dead_letter(run.workspace_id))
        if given_up:
            self._parts.redis.incr(idle_key(keys, IdleResult.FAILED))

    def _wake(self, run: ClaimedRun, at: datetime) -> None:
        self._parts.queue.push(run.queue, [run.claim.run_id], at)


def _path() -> str:
    """Give what a child finds its modules by: the rooms, and where this process's own plug-ins may lie."""
    return os.pathsep.join(filter(None, (str(ROOMS), os.environ.get("PYTHONPATH"))))


def _nothing() -> None:
    """Follow a death with nothing: another process or the child itself has written what there is."""


def cause_of(code: int) -> str:
    """Name how a process ended: its signal, or its exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
