"""Runs whose worker fell silent: back to PENDING while there are attempts left, else to DEAD_LETTER.

An expired lease is no proof: after a machine slept, every lease looks expired until its worker has renewed
it. So one is reclaimed only if two looks, well apart on the monotonic clock, saw it expired and unchanged.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.dead_letters import DeadLetter, DeadLetterKind, automation_names, record_dead_letters
from shared.db.history import Attempt, RunLog, insert_attempts, insert_logs
from shared.db.rescue import (
    CrashedRun,
    ExpiredLease,
    bury_runs,
    expired_leases,
    lock_expired,
    rescue_runs,
)
from shared.faults import FaultPoint, passed
from shared.keys import DEAD_LETTERS, Keys, idle_key
from shared.logs import get_logger
from shared.model.idle_steps import IdleResult
from shared.model.runs import WORKER_CRASHED, LogLine, QueueKind, RunError
from shared.observations import Measure, Observations
from shared.services.idle_ends import GIVEN_UP, end_steps
from shared.settings import Settings
from watchdog.parts import Parts

MOST: Final = 1000

log: Final = get_logger("watchdog")


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """Which runs one transaction moved at `at`; with `given_up` of them an idle step has failed."""

    rescued: tuple[CrashedRun, ...]
    buried: tuple[CrashedRun, ...]
    at: datetime
    given_up: int


def may_retry(run: CrashedRun, settings: Settings) -> bool:
    """Tell whether a run that has crashed once more may try again."""
    return run.failures < settings.auto_run_max_retries and run.crash_count + 1 < settings.run_max_crashes


class Leases:
    """Reclaims expired leases. It remembers what it saw, so one instance lives as long as the process."""

    def __init__(self, parts: Parts) -> None:
        """Start having seen nothing."""
        self._parts = parts
        self._seen: dict[ExpiredLease, float] = {}

    def reclaim(self) -> None:
        """Look once, and reclaim what was seen before. A second watchdog that does so finds nothing left."""
        parts = self._parts
        with parts.database.read() as conn:
            expired = expired_leases(conn, now=parts.clock.now(), most=MOST)
        seen_at = parts.clock.monotonic()
        self._seen = {lease: self._seen.get(lease, seen_at) for lease in expired}
        apart_s = parts.settings.watchdog_leases_s
        ripe = [lease for lease, first in self._seen.items() if seen_at - first >= apart_s]
        if ripe:
            self._tell(parts.database.transact(lambda conn: self._move(conn, ripe)))

    def _move(self, conn: Connection, ripe: Sequence[ExpiredLease]) -> Reclaimed:
        now = self._parts.clock.now()
        crashed = lock_expired(conn, ripe)
        alive = [run for run in crashed if may_retry(run, self._parts.settings)]
        spent = [run for run in crashed if not may_retry(run, self._parts.settings)]
        rescued = rescue_runs(conn, [run.claim for run in alive], now=now)
        buried = bury_runs(conn, [(run.claim, _error(run)) for run in spent], now=now)
        given_up = end_steps(conn, buried, GIVEN_UP, now) if buried else 0
        done = Reclaimed(
            rescued=tuple(run for run in alive if run.claim.run_id in rescued),
            buried=tuple(run for run in spent if run.claim.run_id in buried),
            at=now,
            given_up=given_up,
        )
        insert_attempts(conn, [_attempt(run, now) for run in (*done.rescued, *done.buried)])
        insert_logs(conn, [_log(run, now) for run in done.rescued])
        if done.buried:
            names = automation_names(conn, (run.automation_id for run in done.buried if run.automation_id))
            letters = [_letter(run, names, now) for run in done.buried]
            record_dead_letters(conn, letters, now=now)
        passed(FaultPoint.RESCUE_BEFORE_COMMIT)
        return done

    def _tell(self, done: Reclaimed) -> None:
        """Do what follows the commit; what is lost of it here is made good by the search for lost handles."""
        for run in done.rescued:
            log.warning("run_reclaimed", **_facts(run))
        for run in done.buried:
            log.error("run_dead_lettered", code=WORKER_CRASHED, **_facts(run))
        with self._parts.redis.pipeline(transaction=False) as pipe:
            for kind in QueueKind:
                ids = [run.claim.run_id for run in done.rescued if run.queue is kind]
                if ids:
                    self._parts.queue.add_to(pipe, kind, ids, done.at)
            for workspace_id, count in Counter(run.workspace_id for run in done.buried).items():
                pipe.incrby(self._parts.keys.dead_letter(workspace_id), count)
            if done.buried:
                pipe.incrby(self._parts.keys.count(DEAD_LETTERS), len(done.buried))
                pipe.incrby(idle_key(self._parts.keys, IdleResult.FAILED), done.given_up)
                _durations(done, self._parts.keys).add_to(pipe)
            pipe.execute()


def _durations(done: Reclaimed, keys: Keys) -> Observations:
    observed = Observations(keys)
    for run in done.buried:
        observed.add(Measure.RUN_DEAD_LETTER, done.at - (run.started_at or done.at))
    return observed


def _facts(run: CrashedRun) -> dict[str, str | int | None]:
    return {
        "run_id": run.claim.run_id,
        "automation_id": run.automation_id,
        "workspace_id": run.workspace_id,
        "owner": run.owner,
        "crashes": run.crash_count + 1,
    }


def _error(run: CrashedRun) -> RunError:
    return RunError(WORKER_CRASHED, f"its worker died or fell silent, crash {run.crash_count + 1}", None)


def _attempt(run: CrashedRun, now: datetime) -> Attempt:
    return Attempt(
        claim=run.claim,
        outcome="crashed",
        error=_error(run),
        owner=run.owner,
        started_at=run.started_at,
        ended_at=now,
    )


def _log(run: CrashedRun, now: datetime) -> RunLog:
    data = {"code": WORKER_CRASHED, "owner": run.owner, "crashes": run.crash_count + 1}
    line = LogLine("warning", "watchdog reclaimed stale RUNNING run", now, data)
    return RunLog(run.workspace_id, run.automation_id, run.claim.run_id, line)


def _letter(run: CrashedRun, names: Mapping[str, str], now: datetime) -> DeadLetter:
    name = run.title or names.get(run.automation_id or "", run.automation_id or "")
    return DeadLetter.of(run, name, _error(run), DeadLetterKind.CRASHED, now)
