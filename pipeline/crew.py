"""The threads that drive runs which wait on the world, and the monitor that gives up on those that hang.

Run threads are our own daemon threads: nothing joins them at the end. A thread whose action outlives its
deadline is abandoned: the monitor ends the run, starts another thread, and the old one finds itself
unwanted when it returns.
"""

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from executors.classify import UNEXPECTED, Classification, describe
from executors.deadline import ACTION_TIMEOUT, Deadline
from pipeline.drive import Performed, Step, closing_lines, life
from pipeline.held import HeldRun, HeldRuns, Phase
from pipeline.journal import Journal
from pipeline.parts import Parts
from pipeline.perform import Performer
from pipeline.settling import Stopped, stopped_at_gate
from pipeline.verdicts import Record, Standing, Verdict
from shared.faults import FaultPoint, passed
from shared.logs import get_logger
from shared.model.runs import Claim, ClaimedRun, DeadLettered, Failed, HandedBack, LogLine, Outcome, RunError

log = get_logger("pipeline")

MONITOR_EVERY_S: Final = 0.1
MARGIN_S: Final = 0.5
ABANDONED_PER_PERMIT: Final = 2


class GivenUp(Exception):
    """The run is no longer this thread's: it was handed back, or timed out."""


@dataclass(frozen=True, slots=True)
class ThreadStage:
    """What a life needs from around it, for a run on a thread of its own."""

    crew: "Crew"
    held: HeldRun

    def now(self) -> datetime:
        """Give the present instant."""
        return self.crew.parts.clock.now()

    def depth_max(self) -> int:
        """Give the depth from which runs are skipped."""
        return self.crew.parts.settings.automation_max_depth

    def is_ending(self) -> bool:
        """Tell whether the process ends."""
        return self.crew.ending.is_set()

    def note(self, record: Record) -> None:
        """Have log lines written soon."""
        self.crew.journal.hand_over(record)

    def at_gate(self, run: ClaimedRun) -> Stopped | None:
        """Look once more at a run that has waited."""
        return self.crew.at_gate([run]).get(run.claim.run_id)

    def perform(self, step: Step, scope: Mapping[str, Any]) -> Performed:
        """Carry the action out under its deadline. Raises GivenUp if the run was taken away meanwhile."""
        deadline = Deadline.after(self.crew.parts.clock, step.action.timeout)
        if not self.crew.held.act(self.held, step, deadline.at):
            raise GivenUp
        performed = self.crew.performer.perform(step, scope, deadline)
        if not self.crew.held.resume(self.held, Phase.ACTING):
            raise GivenUp
        return performed


class Crew:
    """`AUTOMATIONS_WORKER_CONCURRENCY` threads, a monitor, and the way every last record takes."""

    def __init__(
        self, parts: Parts, held: HeldRuns, journal: Journal, noted: Callable[[float], None]
    ) -> None:
        """Start nothing yet. `noted` is told how long each run took, in seconds."""
        self.parts: Final = parts
        self.held: Final = held
        self.journal: Final = journal
        self.performer: Final = Performer(parts)
        self.ending: Final = threading.Event()
        self._noted = noted
        self._ready: queue.SimpleQueue[HeldRun] = queue.SimpleQueue()
        self._monitor = threading.Thread(target=self._watch, name="monitor", daemon=True)
        self._abandoned: set[Claim] = set()
        self._counting = threading.Lock()

    def start(self) -> None:
        """Start the monitor and the threads."""
        self._monitor.start()
        for _ in range(self.parts.settings.automations_worker_concurrency):
            self._add_thread()

    def drive(self, held: HeldRun) -> None:
        """Line a run up for the next free thread."""
        self._ready.put(held)

    def failure(self) -> str | None:
        """Say why the process cannot go on, or None."""
        if not self._monitor.is_alive():
            return "the monitor of deadlines died"
        most = ABANDONED_PER_PERMIT * self.parts.settings.automations_worker_concurrency
        with self._counting:
            hanging = len(self._abandoned)
        return f"{hanging} threads hang past their deadlines" if hanging > most else None

    def finish(self, held: HeldRun, record: Record) -> None:
        """Hand a run's last record over; the run is let go when it is written.

        Waits only while the journal is full.
        """

        def settled(verdict: Verdict) -> None:
            self.held.drop(held.run.claim)
            tell(record, verdict)

        passed(FaultPoint.RUN_BEFORE_TERMINAL)
        self.journal.hand_over(record, settled)

    def at_gate(self, runs: Sequence[ClaimedRun]) -> dict[str, Stopped]:
        """Look once more at runs that have waited; give those that are to end, by id."""
        return stopped_at_gate(self.parts.settlers, runs, self.parts.clock.now())

    def hand_back(self, held: HeldRun, origin: Phase, outcome: HandedBack) -> None:
        """Leave a run to another process; nothing happens where it has moved on from `origin` meanwhile."""
        if self.held.leave(held, origin):
            now = self.parts.clock.now()
            lines = closing_lines(outcome, now)
            self.finish(held, Record(held.run, held.plan.name, now, logs=lines, outcome=outcome))

    def _add_thread(self) -> None:
        threading.Thread(target=self._work, name="run", daemon=True).start()

    def _work(self) -> None:
        while True:
            held = self._ready.get()
            if not self.held.resume(held, Phase.WAITING):
                continue
            started = self.parts.clock.monotonic()
            try:
                self._live(held)
            except GivenUp:
                with self._counting:
                    self._abandoned.discard(held.run.claim)
                return  # its place is taken, or the process ends
            except Exception as error:  # a fault of ours must end in a row, not in a run that nobody drives
                log.exception("run_thread_failed", run_id=held.run.claim.run_id)
                if self.held.leave(held, Phase.BETWEEN) or self.held.leave(held, Phase.ACTING):
                    self.finish(held, broken(held, error, self.parts.clock.now()))
            self._noted(self.parts.clock.monotonic() - started)

    def _live(self, held: HeldRun) -> None:
        story = life(held.run, held.plan, ThreadStage(self, held))
        record = next(story, None)
        while record is not None and record.outcome is None:
            verdict = self.journal.hand_over(record).wait()
            if verdict.standing is not Standing.WRITTEN:
                tell(record, verdict)
            try:
                record = story.send(verdict)
            except StopIteration:
                record = None
        if record is None:
            self.held.drop(held.run.claim)
        elif self.held.leave(held, Phase.BETWEEN):
            self.finish(held, record)

    def _watch(self) -> None:
        while not self.ending.wait(MONITOR_EVERY_S) or len(self.held):
            for held in self.held.leave_overdue(self.parts.clock.monotonic() - MARGIN_S):
                if held.step is not None:
                    self._abandon(held, held.step)
            if self.ending.is_set():
                threading.Event().wait(MONITOR_EVERY_S)

    def _abandon(self, held: HeldRun, step: Step) -> None:
        with self._counting:
            self._abandoned.add(held.run.claim)
        self._add_thread()
        log.warning("action_abandoned", run_id=held.run.claim.run_id, type=step.action.type)
        found = Classification(
            retryable=False, code=ACTION_TIMEOUT, message="the action did not end within its time"
        )
        self.finish(held, step.failed(found, self.parts.clock.now()))


def tell(record: Record, verdict: Verdict) -> None:
    """Log a move that was seen to succeed, or a claim that was lost."""
    run_id = record.run.claim.run_id
    if verdict.standing is Standing.FENCED:
        log.warning("claim_lost", run_id=run_id, lease=record.run.claim.lease)
    elif verdict.standing is Standing.ENDED:
        log.warning("outcome_refused", run_id=run_id, automation_id=record.run.automation_id)
    elif isinstance(record.outcome, DeadLettered):
        log.error("run_dead_lettered", run_id=run_id, automation_id=record.run.automation_id)
    elif record.outcome is not None:
        log.info("run_moved", run_id=run_id, automation_id=record.run.automation_id, to=_name(record.outcome))


def _name(outcome: Outcome) -> str:
    return type(outcome).__name__.lower()


def broken(held: HeldRun, error: Exception, at: datetime) -> Record:
    """Make the record of a run that our own code failed."""
    found = RunError(UNEXPECTED, describe(error), None)
    line = LogLine("error", "run failed", at, {"code": found.code, "message": found.message})
    return Record(held.run, held.plan.name, at, logs=(line,), outcome=Failed(found))
