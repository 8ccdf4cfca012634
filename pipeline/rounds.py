"""Runs that only change our own tables, driven as one set.

A round performs one action of each and commits once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.exc import DBAPIError

from executors.deadline import Deadline
from pipeline.crew import Crew, broken, tell
from pipeline.drive import Life, Performed, Step, life
from pipeline.held import HeldRun, Phase
from pipeline.settling import Stopped
from pipeline.verdicts import Record, Standing, Ticket, Verdict
from shared.db.faults import DATA_FAULTS
from shared.db.subjects import SubjectKey, find_subjects
from shared.errors import KnockonError
from shared.logs import get_logger
from shared.model.events import event_from_json
from shared.model.runs import ClaimedRun
from shared.model.subjects import SubjectRow, subject_of

log = get_logger("pipeline")


@dataclass(slots=True)
class RoundStage:
    """What a life needs from around it, for a run in a set: nothing of it waits on the world.

    `stopped` are those that are to end at their gate, `subjects` what templates ask for as it is in this
    round; None where they could not be asked about as one set.
    """

    crew: Crew
    stopped: Mapping[str, Stopped] | None
    subjects: Mapping[SubjectKey, SubjectRow] | None = None

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
        """Say how a run that has waited is to end, as the whole set was looked at a moment ago."""
        stopped = self.crew.at_gate([run]) if self.stopped is None else self.stopped
        return stopped.get(run.claim.run_id)

    def perform(self, step: Step, scope: Mapping[str, Any]) -> Performed:
        """Carry the action out; it is only computing, within the limits of templates and conditions."""
        deadline = Deadline.after(self.crew.parts.clock, step.action.timeout + timedelta(seconds=1))
        return self.crew.performer.perform(step, scope, deadline, self.subjects)


def is_local(held: HeldRun) -> bool:
    """Tell whether what is left of a run only changes our own tables, and it never took a process down."""
    done = {action.position for action in held.run.finished}
    return held.run.crash_count == 0 and all(
        action.config.is_local for action in held.plan.actions if action.position not in done
    )


def drive_rounds(crew: Crew, runs: Sequence[HeldRun]) -> None:
    """Drive a set of local runs; returns when the last record of each is with the journal."""
    stage = RoundStage(crew, _look(crew, runs))
    lives: list[tuple[HeldRun, Life, Verdict | None]] = [
        (held, life(held.run, held.plan, stage), None)
        for held in runs
        if crew.held.resume(held, Phase.WAITING)
    ]
    while lives:
        stage.subjects = _subjects(crew, [held for held, _, _ in lives])
        waiting: list[tuple[HeldRun, Life, Ticket]] = []
        for held, story, verdict in lives:
            record = _advance(crew, held, story, verdict)
            if record is None:
                crew.held.drop(held.run.claim)
            elif record.outcome is None:
                waiting.append((held, story, crew.journal.hand_over(record)))
            elif crew.held.leave(held, Phase.BETWEEN):
                crew.finish(held, record)
        lives = [(held, story, _verdict(ticket)) for held, story, ticket in waiting]


def _look(crew: Crew, runs: Sequence[HeldRun]) -> Mapping[str, Stopped] | None:
    """Look once more at all that has waited; where one of them spoils it each is looked at by itself."""
    try:
        return crew.at_gate([held.run for held in runs])
    except (*DATA_FAULTS, KnockonError) as error:
        log.warning("gate_looked_at_one_by_one", runs=len(runs), error=type(error).__name__)
        return None


def _subjects(crew: Crew, runs: Sequence[HeldRun]) -> Mapping[SubjectKey, SubjectRow] | None:
    """Read what the templates of a round may ask for; where that fails each action reads for itself."""
    keys = {_subject_key(held.run) for held in runs if held.plan.reads_subject} - {None}
    if not keys:
        return {}
    try:
        with crew.parts.database.read() as conn:
            return find_subjects(conn, filter(None, keys))
    except DBAPIError as error:
        log.warning("subjects_read_one_by_one", runs=len(runs), error=type(error).__name__)
        return None


def _subject_key(run: ClaimedRun) -> SubjectKey | None:
    try:
        ref = subject_of(event_from_json(run.event))
    except (KnockonError, LookupError, TypeError, ValueError):  # its life will say what is wrong with it
        return None
    return None if ref is None else (run.workspace_id, ref.type, ref.id)


def _advance(crew: Crew, held: HeldRun, story: Life, verdict: Verdict | None) -> Record | None:
    try:
        return next(story) if verdict is None else story.send(verdict)
    except StopIteration:
        return None
    except Exception as error:  # a fault of ours must end in a row, not in a run that nobody drives
        log.exception("run_round_failed", run_id=held.run.claim.run_id)
        return broken(held, error, crew.parts.clock.now())


def _verdict(ticket: Ticket) -> Verdict:
    verdict = ticket.wait()
    if verdict.standing is not Standing.WRITTEN:
        tell(ticket.record, verdict)
    return verdict
