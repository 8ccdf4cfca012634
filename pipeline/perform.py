"""One action: rendered, carried out, judged. Never raises for what the action did."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from executors.classify import classify_error
from executors.contract import ActionResult, RunContext
from executors.deadline import Deadline
from executors.registry import executor_for
from pipeline.drive import ActionFailed, Performed, Step
from pipeline.hidden import hider_of, masked_effects, masked_error
from pipeline.parts import Parts
from shared.db.engine import is_outage
from shared.db.subjects import SubjectKey, find_subject
from shared.errors import RetryableError
from shared.faults import FaultPoint, passed
from shared.hiding import Hider
from shared.logs import get_logger
from shared.model.runs import ActionDone, LogLine
from shared.model.sizes import OUTPUT_SHOWN_BYTES, cut_for_show
from shared.model.subjects import SubjectRow, data, subject_of
from shared.rules.secret_names import ROOT
from shared.services.secrets import open_secrets

T = TypeVar("T")

SQL_AWAY: Final = "DB_TRANSIENT_08006"
WARNED_BYTES: Final = 4_096
NOTHING_HIDDEN: Final = Hider(())

log = get_logger("pipeline")


@dataclass(frozen=True, slots=True)
class Performer:
    """Carries out actions for this process's runs."""

    parts: Parts

    def perform(
        self,
        step: Step,
        scope: Mapping[str, Any],
        deadline: Deadline,
        subjects: Mapping[SubjectKey, SubjectRow] | None = None,
    ) -> Performed:
        """Render an action's configuration and hand it to its executor.

        `subjects` are those of a set that were read a moment ago; None where the action is to read its own.
        What it asked for of the secret store, and what its config hides, is masked in all that comes of it,
        here, before anything is recorded or logged (docs/security.md, "Secret store").
        """
        started_at = self.parts.clock.now()
        lines: tuple[LogLine, ...] = ()
        hider = NOTHING_HIDDEN
        try:
            secrets = self._secrets(step)
            hider = hider_of(secrets, None)
            rendered = step.action.template.render(
                {**scope, **self._subject(step, subjects), **_named(secrets)}
            )
            hider = hider_of(secrets, rendered.config)
            if rendered.missing:
                names = {"names": hider.tree(list(rendered.missing))}
                lines = (step.line("renders undefined", started_at, names, "warning"),)
            executor = executor_for(step.action.type, self.parts.executors)
            passed(FaultPoint.ACTION_BEFORE_EFFECT)
            result = executor(rendered.config, self._context(step, deadline))
            passed(FaultPoint.ACTION_AFTER_EFFECT)
        except Exception as error:  # the one place where any error of an action is judged
            found = classify_error(error, deadline)
            shown = masked_error(error, hider)
            log.debug("action_failed", run_id=step.run.claim.run_id, code=found.code, exc_info=shown)
            return Performed(ActionFailed(replace(found, message=hider.text(found.message))), lines)
        done = self._done(step, result, started_at, hider)
        return Performed(done, lines + tuple(_warnings(step, result, done.ended_at, hider)))

    def _done(self, step: Step, result: ActionResult, started_at: datetime, hider: Hider) -> ActionDone:
        shown = cut_for_show(hider.tree(result.output), OUTPUT_SHOWN_BYTES)
        return ActionDone(
            position=step.action.position,
            type=step.action.type,
            output=hider.tree(shown),  # once more: what is no JSON became text only now
            effects=masked_effects(result.effects, hider),
            started_at=started_at,
            ended_at=self.parts.clock.now(),
        )

    def _context(self, step: Step, deadline: Deadline) -> RunContext:
        return RunContext(
            run_id=step.run.claim.run_id,
            position=step.action.position,
            attempt=step.run.retry_count + 1,
            workspace_id=step.run.workspace_id,
            automation_id=step.plan.automation_id,
            automation_name=step.plan.name,
            event=step.flat,
            subject=subject_of(step.event),
            entry_id=step.event.entry_id,
            occurred_at=step.event.occurred_at,
            deadline=deadline,
            http=self.parts.http,
            mail=self.parts.mail,
            ai=self.parts.ai,
            now=self.parts.clock.now(),
        )

    def _subject(self, step: Step, subjects: Mapping[SubjectKey, SubjectRow] | None) -> Mapping[str, Any]:
        """Give the subject that the event is about, where a template asks for it."""
        ref = subject_of(step.event) if step.plan.reads_subject else None
        if ref is None:
            return {}
        key = (step.run.workspace_id, ref.type, ref.id)
        if subjects is None:
            row = self._read("the subject", lambda conn: find_subject(conn, *key))
        else:
            row = subjects.get(key)
        return {} if row is None else {"subject": {**data(row), "type": ref.type, "id": ref.id}}

    def _secrets(self, step: Step) -> Mapping[str, str]:
        """Open the secrets that the action's templates ask for, anew for each attempt."""
        names = step.action.secrets
        if not names:
            return {}
        settings, workspace_id = self.parts.settings, step.run.workspace_id
        return self._read("a secret", lambda conn: open_secrets(conn, settings, workspace_id, names))

    def _read(self, what: str, work: Callable[[Connection], T]) -> T:
        """Read rows for the action. Raises RetryableError while SQL is away."""
        try:
            with self.parts.database.read() as conn:
                return work(conn)
        except DBAPIError as error:
            if is_outage(error):
                raise RetryableError(SQL_AWAY, f"{what} could not be read: SQL is away") from error
            raise


def _warnings(step: Step, result: ActionResult, at: datetime, hider: Hider) -> Iterator[LogLine]:
    for each in result.warnings:
        shown = cut_for_show(hider.tree(each.data), WARNED_BYTES)
        yield step.line(hider.text(each.what), at, shown, "warning")


def _named(secrets: Mapping[str, str]) -> Mapping[str, Any]:
    return {ROOT: secrets} if secrets else {}
