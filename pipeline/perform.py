"""One action: rendered, carried out, judged. Never raises for what the action did."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy.exc import DBAPIError

from executors.classify import classify_error
from executors.contract import ActionResult, RunContext
from executors.deadline import Deadline
from executors.registry import executor_for
from pipeline.drive import ActionFailed, Performed, Step
from pipeline.parts import Parts
from shared.db.engine import is_outage
from shared.db.subjects import find_subject
from shared.errors import RetryableError
from shared.faults import FaultPoint, passed
from shared.logs import get_logger
from shared.model.runs import ActionDone, LogLine
from shared.model.sizes import OUTPUT_SHOWN_BYTES, cut_for_show
from shared.model.subjects import data, subject_of

SQL_AWAY: Final = "DB_TRANSIENT_08006"

log = get_logger("pipeline")


@dataclass(frozen=True, slots=True)
class Performer:
    """Carries out actions for this process's runs."""

    parts: Parts

    def perform(self, step: Step, scope: Mapping[str, Any], deadline: Deadline) -> Performed:
        """Render an action's configuration and hand it to its executor."""
        started_at = self.parts.clock.now()
        lines: tuple[LogLine, ...] = ()
        try:
            rendered = step.action.template.render({**scope, **self._subject(step)})
            if rendered.missing:
                lines = (
                    step.line("renders undefined", started_at, {"names": list(rendered.missing)}, "warning"),
                )
            executor = executor_for(step.action.type, self.parts.executors)
            passed(FaultPoint.ACTION_BEFORE_EFFECT)
            result = executor(rendered.config, self._context(step, deadline))
            passed(FaultPoint.ACTION_AFTER_EFFECT)
        except Exception as error:  # the one place where any error of an action is judged
            found = classify_error(error, deadline)
            log.debug("action_failed", run_id=step.run.claim.run_id, code=found.code, exc_info=error)
            return Performed(ActionFailed(found), lines)
        return Performed(self._done(step, result, started_at), lines)

    def _done(self, step: Step, result: ActionResult, started_at: datetime) -> ActionDone:
        return ActionDone(
            position=step.action.position,
            type=step.action.type,
            output=cut_for_show(result.output, OUTPUT_SHOWN_BYTES),
            effects=result.effects,
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
            entry_id=step.event.entry_id,
            occurred_at=step.event.occurred_at,
            deadline=deadline,
            http=self.parts.http,
            now=self.parts.clock.now(),
        )

    def _subject(self, step: Step) -> Mapping[str, Any]:
        """Read the subject that the event is about, where a template asks for it."""
        ref = subject_of(step.event) if step.plan.reads_subject else None
        if ref is None:
            return {}
        try:
            with self.parts.database.read() as conn:
                row = find_subject(conn, step.run.workspace_id, ref.type, ref.id)
        except DBAPIError as error:
            if is_outage(error):
                raise RetryableError(SQL_AWAY, "the subject could not be read: SQL is away") from error
            raise
        return {} if row is None else {"subject": {**data(row), "type": ref.type, "id": ref.id}}
