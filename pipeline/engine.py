"""The engine of one worker process.

Claims handles' runs, drives them, and hands back what it cannot finish.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipeline.after_commit import AfterCommit
from pipeline.crew import Crew
from pipeline.held import HeldRun, HeldRuns, Phase
from pipeline.journal import Journal
from pipeline.parts import Parts
from pipeline.plan_book import PlanBook
from pipeline.renewal import Renewal
from pipeline.rounds import drive_rounds, is_local
from pipeline.solo import Solo
from shared.db.claims import Lessee, claim_runs
from shared.db.engine import is_outage
from shared.errors import Unavailable
from shared.faults import FaultPoint, passed
from shared.model.runs import ClaimedRun, HandedBack

EXTRA_MAX: Final = 45
EXTRA_S: Final = 0.05
FIRST_RUN_S: Final = 0.05
WEIGHT: Final = 0.1
REPEAT_AFTER: Final = timedelta(seconds=2)
FLUSH_S: Final = 5.0


class Engine:
    """Drives runs in this process; `take` is called by one thread only."""

    def __init__(self, parts: Parts) -> None:
        """Build everything, start nothing."""
        self._parts = parts
        self._plans = PlanBook(parts.settings)
        self._held = HeldRuns()
        self._after = AfterCommit(parts)
        self._journal = Journal(parts, self._after, Renewal(parts, self._held))
        self._crew = Crew(parts, self._held, self._journal, self._note_time)
        self._solo = Solo(parts, self._held)
        self._average_s = FIRST_RUN_S

    def start(self) -> None:
        """Start the threads."""
        self._after.start()
        self._journal.start()
        self._crew.start()

    def window(self) -> int:
        """Give how many runs the next claim may take; 0 when there is no room."""
        return max(0, self._busy_most() - self._held.count_busy())

    def wait_for_room(self, timeout_s: float) -> None:
        """Wait until `window` is above 0, or the time is over."""
        self._held.wait_busy_below(self._busy_most(), timeout_s)

    def take(self, run_ids: Sequence[str]) -> None:
        """Claim what can be claimed of these runs and start it; local runs are driven before it returns.

        Raises Unavailable when SQL is away; a claim whose answer was lost comes back when its lease ends.
        """
        started = self._parts.clock.monotonic()
        try:
            held = self._parts.database.transact(lambda conn: self._claim(conn, run_ids))
        except DBAPIError as error:
            if is_outage(error):
                raise Unavailable(f"SQL is away: {type(error.orig).__name__}") from error
            raise
        passed(FaultPoint.CLAIM_AFTER_COMMIT)
        self.adopt(held)
        if held and all(is_local(each) for each in held):
            self._note_time((self._parts.clock.monotonic() - started) / len(held))

    def adopt(self, held: Sequence[HeldRun]) -> None:
        """Drive runs whose claims are this process's already."""
        self._held.add(held)
        local = [each for each in held if is_local(each)]
        for each in held:
            if each.run.crash_count > 0 and not self._solo.is_child():
                self._solo.drive(each)
            elif not is_local(each):
                self._crew.drive(each)
        drive_rounds(self._crew, local)

    def plan(self, conn: Connection, run: ClaimedRun) -> HeldRun:
        """Give a claimed run with its plan."""
        return HeldRun(run, self._plans.current(conn, [run])[run.claim.run_id])

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until every run that was taken is written; False when the time is over first."""
        return self._held.wait_empty(timeout_s)

    def stop(self, grace_s: float) -> None:
        """Finish what can be finished within `grace_s`, hand the rest back, and write all of it.

        Runs between two actions go back at once. A run in the middle of one goes back 2 s later: that action
        may be repeated, under the same idempotency id.
        """
        self._crew.ending.set()
        self._solo.stop()
        now = self._parts.clock.now()
        for held in self._held.in_phase(Phase.WAITING):
            self._crew.hand_back(held, Phase.WAITING, HandedBack(now))
        if not self._held.wait_empty(grace_s):
            for held in self._held.in_phase(Phase.ACTING):
                self._crew.hand_back(held, Phase.ACTING, HandedBack(self._parts.clock.now() + REPEAT_AFTER))
            self._held.wait_empty(FLUSH_S)
        self._journal.close(FLUSH_S)
        self._after.close(FLUSH_S)

    def failure(self) -> str | None:
        """Say why this process cannot go on and must end, or None."""
        if not self._journal.is_alive():
            return "the journal's writer died"
        if not self._after.is_alive():
            return "the thread that works after commits died"
        return self._crew.failure()

    def _claim(self, conn: Connection, run_ids: Sequence[str]) -> list[HeldRun]:
        parts = self._parts
        lessee = Lessee(parts.owner, parts.clock.now(), timedelta(seconds=parts.settings.run_lease_s))
        claimed = claim_runs(conn, run_ids, lessee)
        plans = self._plans.current(conn, claimed) if claimed else {}
        return [HeldRun(run, plans[run.claim.run_id]) for run in claimed]

    def _busy_most(self) -> int:
        permits = self._parts.settings.automations_worker_concurrency
        return permits + min(EXTRA_MAX, int(permits * EXTRA_S / max(self._average_s, 0.001)))

    def _note_time(self, took_s: float) -> None:
        self._average_s += WEIGHT * (took_s - self._average_s)
