"""A run as the rooms hand it around: newly matched, claimed, and how an attempt at it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from shared.model.effects import Effect
from shared.model.moves import SkipReason
from shared.model.stamps import Stamp

WORKER_CRASHED: Final = "WORKER_CRASHED"
BULK_ABOVE: Final = 500


class RunSource(StrEnum):
    """What made a run; with `source_id` it is unique, so that nothing fires twice."""

    EVENT = "event"
    MANUAL = "manual"
    SCHEDULE = "schedule"
    DELAYED = "delayed"
    IDLE_STEP = "idle_step"


class QueueKind(StrEnum):
    """Which of the two queues carries a run's handle: workspaces with a long backlog use the second."""

    MAIN = "main"
    BULK = "bulk"


def queue_for(waiting: int) -> QueueKind:
    """Choose the queue for the next run of a workspace in which so many wait already."""
    return QueueKind.BULK if waiting > BULK_ABOVE else QueueKind.MAIN


def source_id_of(automation_id: str, event_key: str) -> str:
    """Name what makes a run of an event the only one of its automation."""
    return f"{automation_id}:{event_key}"


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run about to be inserted as PENDING. `event` is the whole event when `input` had to be cut.

    `seen` is the newest write of its subject upon which it was made, as a stamp; None if its event decided.
    One without an automation is known by its `title`.
    """

    id: str
    workspace_id: str
    automation_id: str | None
    automation_version: int
    source: RunSource
    source_id: str
    event_key: str | None
    event_hash: str | None
    entry_id: str | None
    trigger_type: str
    subject_type: str | None
    subject_id: str | None
    depth: int
    root_run_id: str
    input: Mapping[str, Any]
    event: Mapping[str, Any] | None
    queue: QueueKind
    created_at: datetime
    seen: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class ExistingRun:
    """A run that was there before: enough to tell a repeat from a conflict and to wake it again."""

    id: str
    source_id: str
    status: str
    lease: int
    event_hash: str | None
    queue: QueueKind
    entry_id: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to act on one run. Each claim raises `lease`, and nothing lowers it."""

    run_id: str
    lease: int


@dataclass(frozen=True, slots=True)
class FinishedAction:
    """A checkpoint: the action at `position` (from 1) succeeded and is not done again."""

    position: int
    type: str
    output: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """What a run that waited was made upon: its subject, the `newest` write of it, and when that was."""

    subject: tuple[str, str]
    newest: Stamp
    at: datetime


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that is ours to drive, as it stood when it was claimed.

    `look` is None for a run that was made upon an event alone. `stop_reason` is set where a person wanted it
    to end while an earlier attempt was under way. `title` names one without an automation.
    """

    claim: Claim
    workspace_id: str
    automation_id: str | None
    source: RunSource
    source_id: str
    trigger_type: str
    event: Mapping[str, Any]
    depth: int
    root_run_id: str
    retry_count: int
    failures: int
    crash_count: int
    started_at: datetime
    queue: QueueKind
    stop_reason: str | None
    finished: tuple[FinishedAction, ...]
    look: Look | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class RunError:
    """Why an attempt failed: a stable code, a text for a person, and the action's position if one failed."""

    code: str
    message: str
    position: int | None


@dataclass(frozen=True, slots=True)
class Succeeded:
    """Every action is done, or `skipped` says why none was to be done."""

    skipped: SkipReason | None
    output: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed for good."""

    error: RunError


@dataclass(frozen=True, slots=True)
class Retried:
    """The attempt failed and another one follows at `at`; `failures` counts those of the current action."""

    error: RunError
    at: datetime
    failures: int


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """The last attempt that the cap allows failed."""

    error: RunError


@dataclass(frozen=True, slots=True)
class HandedBack:
    """Nothing failed: the process ends and leaves the run to another one, from `at` on."""

    at: datetime


Outcome = Succeeded | Failed | Retried | DeadLettered | HandedBack


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a run's log, as operators read it."""

    level: str
    message: str
    at: datetime
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ActionDone:
    """An action that succeeded, with the changes to our own tables that its checkpoint carries."""

    position: int
    type: str
    output: Mapping[str, Any]
    effects: tuple[Effect, ...]
    started_at: datetime
    ended_at: datetime
