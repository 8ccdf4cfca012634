"""A step of an idle sequence as it waits: one row a step (docs/idle-sequences.md). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from shared.errors import IllegalMove
from shared.model.stamps import Stamp


class IdleRuleKind(StrEnum):
    """Whose rule a step follows: that of the conversation's AI agent, or that of its channel."""

    AGENT = "agent"
    CHANNEL = "channel"


class IdleAction(StrEnum):
    """What a step does."""

    FOLLOW_UP = "follow_up"
    ASSIGN = "assign"
    RESOLVE = "resolve"


class IdleStatus(StrEnum):
    """Where a step stands; PROCESSING is a sweep's claim, or has a run that settles it."""

    PENDING = "pending"
    PROCESSING = "processing"
    FIRED = "fired"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"
    FAILED = "failed"


class IdleStop(StrEnum):
    """Why a step did nothing, and no later one follows."""

    CONVERSATION_CLOSED = "conversation_closed"
    CONVERSATION_GONE = "conversation_gone"
    CUSTOMER_REPLIED = "customer_replied"
    SUPERSEDED = "superseded"
    AGENT_GONE = "agent_gone"
    CONFIG_CHANGED = "config_changed"
    DISARMED = "disarmed"
    CANCELLED = "cancelled"


class IdleResult(StrEnum):
    """What is counted of steps: RESET is one that the customer's answer ended, RESOLVED one that closed.

    What is RESOLVED has FIRED, too.
    """

    FIRED = "fired"
    FAILED = "failed"
    RESET = "reset"
    RESOLVED = "resolved"


# A failed one goes on where a person replays its run; a stopped one waits again where it turns out that its
# conversation had ended before its message came.
IDLE_MOVES: Final[Mapping[IdleStatus, frozenset[IdleStatus]]] = MappingProxyType(
    {
        IdleStatus.PENDING: frozenset({IdleStatus.PROCESSING, IdleStatus.STOPPED, IdleStatus.SUPERSEDED}),
        IdleStatus.PROCESSING: frozenset(
            {
                IdleStatus.PENDING,
                IdleStatus.FIRED,
                IdleStatus.STOPPED,
                IdleStatus.SUPERSEDED,
                IdleStatus.FAILED,
            }
        ),
        IdleStatus.FIRED: frozenset(),
        IdleStatus.STOPPED: frozenset({IdleStatus.PENDING}),
        IdleStatus.SUPERSEDED: frozenset(),
        IdleStatus.FAILED: frozenset({IdleStatus.FIRED, IdleStatus.STOPPED, IdleStatus.SUPERSEDED}),
    }
)

# What may still fire.
OPEN: Final = frozenset({IdleStatus.PENDING, IdleStatus.PROCESSING})


def check_idle_move(origin: IdleStatus, to: IdleStatus) -> None:
    """Raise IllegalMove unless the table has this edge."""
    if to not in IDLE_MOVES[origin]:
        raise IllegalMove(f"{origin} -> {to}")


@dataclass(frozen=True, slots=True)
class IdleAnchor:
    """The message that a step's clock runs from."""

    message_id: str
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class IdleStepRow:
    """A step as it is stored. `step_index` counts from 0; `step_count` and `action` are as of its arming.

    `version` rises with each change. `ended_at` is when it fired, failed or was stopped.
    """

    id: str
    workspace_id: str
    conversation_id: str
    sequence_id: str
    rule: IdleRuleKind
    agent_id: str | None
    channel_id: str | None
    step_index: int
    step_count: int
    action: IdleAction
    anchor: IdleAnchor
    due_at: datetime
    status: IdleStatus
    reason: IdleStop | None
    run_id: str | None
    version: int
    claimed_at: datetime | None
    ended_at: datetime | None
    created_at: datetime
    updated_at: datetime


def shown_idle(row: IdleStepRow) -> dict[str, str | int | None]:
    """Name a step as logs do, without a word of what it says."""
    return {
        "step_id": row.id,
        "conversation_id": row.conversation_id,
        "agent_id": row.agent_id,
        "channel_id": row.channel_id,
        "step_index": row.step_index,
    }
