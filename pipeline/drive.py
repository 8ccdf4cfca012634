"""The life of a run, top to bottom: guards, gate, actions in order, an end.

`life` is a generator, so that one story serves both ways of driving: a thread of its own for runs that wait
on the world, and rounds over a whole set for runs that only change our own tables. It yields each step as a
record for the journal and is sent the verdict. Whatever it did before a crash is on record; it resumes
after the last checkpoint.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from executors.classify import Classification
from pipeline.failing import after_failure
from pipeline.guards import guard
from pipeline.plans import Plan, PlannedAction
from pipeline.scope import run_scope
from pipeline.settling import WAITED, StandDown, Stopped
from pipeline.verdicts import Record, Standing, Verdict
from shared.errors import ActionError, RetryableError
from shared.faults import FaultPoint, passed
from shared.model.events import Event, event_from_json, flatten
from shared.model.moves import SkipReason
from shared.model.runs import (
    ActionDone,
    ClaimedRun,
    DeadLettered,
    Failed,
    HandedBack,
    LogLine,
    Outcome,
    Retried,
    RunError,
    Succeeded,
)
from shared.rules.blaming import shown_leaves
from shared.rules.conditions import compile_blame
from shared.rules.scopes import gate_scope

Life = Generator[Record, Verdict, None]


@dataclass(frozen=True, slots=True)
class ActionFailed:
    """An action that did not succeed, and the verdict on its error."""

    found: Classification


@dataclass(frozen=True, slots=True)
class Performed:
    """What performing one action came to, with log lines of its own (such as undefined template names)."""

    result: ActionDone | ActionFailed
    logs: tuple[LogLine, ...] = ()


class Stage(Protocol):
    """What a life needs from around it; the engine gives it."""

    def now(self) -> datetime:
        """Give the present instant."""
        ...

    def depth_max(self) -> int:
        """Give the depth from which runs are skipped."""
        ...

    def is_ending(self) -> bool:
        """Tell whether the process ends, so that runs are handed back between actions."""
        ...

    def perform(self, step: "Step", scope: Mapping[str, Any]) -> Performed:
        """Render and carry out one action; never raises for what the action did."""
        ...

    def note(self, record: Record) -> None:
        """Have log lines written soon, without waiting for it."""
        ...

    def at_gate(self, run: ClaimedRun) -> Stopped | None:
        """Look once more whether a run that has waited is to act; say how it ends if not."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One action of one run, about to be performed."""

    run: ClaimedRun
    plan: Plan
    event: Event
    action: PlannedAction

    @property
    def flat(self) -> dict[str, Any]:
        """The event as executors see it."""
        return flatten(self.event)

    def record(self, at: datetime, **parts: Any) -> Record:
        """Make a record about this run."""
        return Record(self.run, self.plan.name, at, mark=self.plan.mark, **parts)

    def failed(self, found: Classification, at: datetime, logs: tuple[LogLine, ...] = ()) -> Record:
        """Make the record of this action's failure and what follows from it."""
        failures = self.run.failures if self.action.position == len(self.run.finished) + 1 else 0
        outcome = after_failure(self.action, found, failures, at)
        line = self.line("failed", at, {"code": found.code, "message": found.message}, level="warning")
        return self.record(
            at,
            logs=(*logs, line, *closing_lines(outcome, at)),
            outcome=outcome,
            failed_type=self.action.type,
        )

    def line(self, what: str, at: datetime, data: Mapping[str, Any] | None, level: str = "info") -> LogLine:
        """Make the action's own log line: `action i/n TYPE started|done|failed`."""
        return LogLine(
            level,
            f"action {self.action.position}/{len(self.plan.actions)} {self.action.type} {what}",
            at,
            data,
        )


def life(run: ClaimedRun, plan: Plan, stage: Stage) -> Life:
    """Tell a claimed run's life: yields every record that the journal must write, ends after the last one."""
    passed(FaultPoint.RUN_BEFORE_GUARD)
    event = event_from_json(run.event)
    now = stage.now()
    started = LogLine("info", "run started", now, {"attempt": run.retry_count + 1, "lease": run.claim.lease})
    ended = guard(run, plan, event, stage.depth_max())
    stopped = _gate(run, plan, event, stage) if ended is None else Stopped(ended)
    if stopped is not None:
        lines = (started, *closing_lines(stopped.outcome, now, stopped.why))
        yield Record(run, plan.name, now, logs=lines, outcome=stopped.outcome)
        return
    yield from _act(
        run, plan, stage, _Story(event, {done.position: done.output for done in run.finished}, (started,))
    )


@dataclass(slots=True)
class _Story:
    event: Event
    outputs: dict[int, Mapping[str, Any]]
    lines: tuple[LogLine, ...]


def _act(run: ClaimedRun, plan: Plan, stage: Stage, story: _Story) -> Life:
    """Perform what is left to do, one checkpoint an action."""
    for action in plan.actions:
        if action.position in story.outputs:
            continue
        step = Step(run, plan, story.event, action)
        record = _perform(step, stage, story)
        verdict = yield record
        if record.outcome is not None or verdict.standing is not Standing.WRITTEN:
            return
        story.outputs[action.position] = verdict.output
        stopped = _between(verdict, stage)
        if stopped is not None:
            yield step.record(stage.now(), logs=closing_lines(stopped, stage.now()), outcome=stopped)
            return
    now = stage.now()
    done = Succeeded(None, _outputs(story.outputs))
    yield Record(run, plan.name, now, logs=(*story.lines, *closing_lines(done, now)), outcome=done)


def _perform(step: Step, stage: Stage, story: _Story) -> Record:
    started_at = stage.now()
    lines = (*story.lines, step.line("started", started_at, None))
    story.lines = ()
    if not step.action.config.is_local:
        stage.note(step.record(started_at, logs=lines))
        lines = ()
    scope = run_scope(step.run, step.plan, step.event, story.outputs, started_at)
    performed = stage.perform(step, scope)
    now = stage.now()
    lines = (*lines, *performed.logs)
    if isinstance(performed.result, ActionFailed):
        return step.failed(performed.result.found, now, lines)
    done = performed.result
    refused, stood_down = _refusal(step, now, lines), _standing_down(step, now, lines)
    lines = (*lines, step.line("done", now, None))
    outcome: Outcome | None = None
    if step.action.position == len(step.plan.actions):
        outcome = Succeeded(None, _outputs({**story.outputs, done.position: done.output}))
        lines = (*lines, *closing_lines(outcome, now))
    own = frozenset(str(output["event_id"]) for output in story.outputs.values() if "event_id" in output)
    return step.record(
        now,
        logs=lines,
        done=done,
        outcome=outcome,
        refused=refused,
        stood_down=stood_down,
        own_events=own,
    )


def _refusal(step: Step, at: datetime, lines: tuple[LogLine, ...]) -> Callable[[ActionError], Record]:
    def refused(error: ActionError) -> Record:
        found = Classification(isinstance(error, RetryableError), error.code, error.message)
        return step.failed(found, at, lines)

    return refused


def _standing_down(step: Step, at: datetime, lines: tuple[LogLine, ...]) -> Callable[[StandDown], Record]:
    def stood_down(why: StandDown) -> Record:
        outcome = Succeeded(why.reason, {})
        return step.record(at, logs=(*lines, *closing_lines(outcome, at, why.why)), outcome=outcome)

    return stood_down


def _between(verdict: Verdict, stage: Stage) -> Failed | HandedBack | None:
    """Say whether a run stops between two actions: a person wants it to, or the process ends."""
    if verdict.stop_reason is not None:
        return Failed(RunError(verdict.stop_reason, "stopped between two actions", None))
    if stage.is_ending():
        return HandedBack(stage.now())
    return None


def closing_lines(
    outcome: Outcome, at: datetime, data: Mapping[str, Any] | None = None
) -> tuple[LogLine, ...]:
    """Tell the end of an attempt in the words of the log; a dead letter's line is written with its notice."""
    match outcome:
        case Succeeded(skipped=None):
            return (LogLine("info", "run completed", at),)
        case Succeeded(skipped=reason):
            return (LogLine("info", f"run skipped: {reason}", at, data),)
        case Failed(error=error):
            return (LogLine("error", "run failed", at, {"code": error.code, "message": error.message}),)
        case Retried(error=error, at=due):
            return (LogLine("warning", "run retries", at, {"code": error.code, "at": due.isoformat()}),)
        case DeadLettered():
            return ()
        case HandedBack():
            return (LogLine("info", "run handed back", at),)


def _gate(run: ClaimedRun, plan: Plan, event: Event, stage: Stage) -> Stopped | None:
    """Say how a run that has not acted yet ends at its gate: by its event, or by what has become of it."""
    if run.finished:
        return None
    if run.source in WAITED:
        return stage.at_gate(run)
    scope = gate_scope(event, stage.now())
    if plan.holds(scope):
        return None
    said = shown_leaves(compile_blame(plan.conditions)(scope)) if plan.conditions else None
    return Stopped(Succeeded(SkipReason.CONDITIONS, {}), said)


def _outputs(outputs: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    return {"actions": {str(position): output for position, output in sorted(outputs.items())}}
