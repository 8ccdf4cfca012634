"""What an executor gets and gives back. The pipeline calls; each file of an action type here answers.

An executor is one function: it does what the rendered `config` asks within `run.deadline` and returns, or
raises RetryableError or FatalError. Whatever else it raises is judged by `executors.classify`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from executors.ai_service import AiService
from executors.deadline import Deadline
from executors.outbound import Outbound
from executors.smtp import Mailer
from shared.model.actions import ActionConfig
from shared.model.effects import Effect
from shared.model.subjects import SubjectRef

__all__ = ["ActionResult", "Deadline", "Executor", "RunContext", "Warned"]


@dataclass(frozen=True, slots=True)
class RunContext:
    """What an action may know of its run. `position` and `attempt` count from 1; `event` is flattened.

    `subject` is what the event is about, if it is about anything.
    """

    run_id: str
    position: int
    attempt: int
    workspace_id: str
    automation_id: str
    automation_name: str
    event: Mapping[str, Any]
    subject: SubjectRef | None
    entry_id: str
    occurred_at: datetime
    deadline: Deadline
    http: Outbound
    mail: Mailer
    ai: AiService
    now: datetime

    @property
    def idempotency_id(self) -> str:
        """Name the effect of this action: equal for every attempt, so that a receiver can drop a repeat."""
        return f"{self.run_id}:{self.position}"


@dataclass(frozen=True, slots=True)
class Warned:
    """A line for the run's log, of what somebody should know although the action succeeded."""

    what: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What an action gave: `output` for templates and people, `effects` for the journal to apply."""

    output: Mapping[str, Any]
    effects: tuple[Effect, ...] = ()
    warnings: tuple[Warned, ...] = ()


Executor = Callable[[ActionConfig, RunContext], ActionResult]
