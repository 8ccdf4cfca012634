"""The event `automation.executed`: how a run ended, told to whoever listens on the stream. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, Self

from shared.model.events import Context, EventDraft, encode_fields
from shared.model.moves import RunStatus
from shared.model.runs import Claim, RunError
from shared.model.sizes import cut_text

EXECUTED: Final = "automation.executed"
SOURCE: Final = "knockon"
MESSAGE_BYTES: Final = 4096


class DrivenRun(Protocol):
    """What every kind of claimed run knows of itself."""

    @property
    def claim(self) -> Claim:
        """The claim under which it was driven."""
        ...

    @property
    def workspace_id(self) -> str:
        """Its workspace."""
        ...

    @property
    def automation_id(self) -> str | None:
        """Its automation, if it has one."""
        ...

    @property
    def root_run_id(self) -> str:
        """The first run of its chain."""
        ...

    @property
    def trigger_type(self) -> str:
        """What started it."""
        ...

    @property
    def depth(self) -> int:
        """How many automations stand before it."""
        ...

    @property
    def retry_count(self) -> int:
        """How often it was tried again."""
        ...

    @property
    def title(self) -> str | None:
        """What it is called, if it has no automation."""
        ...

    @property
    def started_at(self) -> datetime | None:
        """When it was first driven."""
        ...


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has just come to a terminal state; skipped runs are SUCCEEDED."""

    run_id: str
    workspace_id: str
    automation_id: str | None
    root_run_id: str
    trigger_type: str
    depth: int
    status: RunStatus
    duration_ms: int
    error: RunError | None
    title: str | None = None

    @classmethod
    def of(cls, run: DrivenRun, status: RunStatus, error: RunError | None, now: datetime) -> Self:
        """Tell of a claimed run that ends at `now`."""
        return cls(
            run_id=run.claim.run_id,
            workspace_id=run.workspace_id,
            automation_id=run.automation_id,
            root_run_id=run.root_run_id,
            trigger_type=run.trigger_type,
            depth=run.depth,
            status=status,
            duration_ms=duration_ms(run.started_at, now),
            error=error,
            title=run.title,
        )


def executed_event(run: EndedRun, *, event_id: str, now: datetime) -> dict[str, str] | None:
    """Give the fields of the event that tells of this end, ready for XADD; None for a run of depth 1 or more.

    `event_id` is also the id of the outbox row. The event carries depth 1, so a run that it starts tells of
    its own end no more, and nothing that listens to it can loop.
    """
    if run.depth > 0:
        return None
    payload: dict[str, Any] = {
        "workspaceId": run.workspace_id,
        "automationId": run.automation_id,
        "runId": run.run_id,
        "status": run.status,
        "triggerType": run.trigger_type,
        "durationMs": run.duration_ms,
    }
    if run.title is not None:
        payload["name"] = run.title
    if run.error is not None:
        message = cut_text(run.error.message, MESSAGE_BYTES)
        payload["error"] = {"code": run.error.code, "message": message}
    return encode_fields(
        EventDraft(
            type=EXECUTED,
            workspace_id=run.workspace_id,
            payload=payload,
            id=event_id,
            occurred_at=now,
            context=Context(run.automation_id, run.run_id, run.root_run_id, depth=1),
            source=SOURCE,
        )
    )


def duration_ms(started_at: datetime | None, now: datetime) -> int:
    """Give how long a run took, in whole milliseconds; 0 for one that never started."""
    return 0 if started_at is None else max(0, int((now - started_at).total_seconds() * 1000))
