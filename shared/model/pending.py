"""What a delayed automation waits with: one row an episode of a subject (docs/delayed.md). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from shared.errors import BadEvent, IllegalMove
from shared.model.events import Event, event_from_json
from shared.model.moves import SkipReason
from shared.model.stamps import Stamp


class Anchor(StrEnum):
    """What an episode's clock hangs on: a state of the subject, or a message of a conversation."""

    STATE = "state"
    AWAITING_AGENT = "awaiting_agent"
    REPLY_CHASE = "reply_chase"


class PendingStatus(StrEnum):
    """Where a pending execution stands; PROCESSING is a sweep's claim."""

    PENDING = "pending"
    PROCESSING = "processing"
    EXECUTED = "executed"
    SKIPPED = "skipped"


class PendingSkip(StrEnum):
    """Why a pending execution did not run."""

    RULE_INACTIVE = "rule_inactive"
    SUBJECT_GONE = "subject_gone"
    EPISODE_MOVED = "episode_moved"
    CONDITIONS_CHANGED = "conditions_changed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    UNREADABLE = "unreadable"


# A skipped one comes back only where its episode begins anew, an executed one is corrected by its own run.
PENDING_MOVES: Final[Mapping[PendingStatus, frozenset[PendingStatus]]] = MappingProxyType(
    {
        PendingStatus.PENDING: frozenset({PendingStatus.PROCESSING, PendingStatus.SKIPPED}),
        PendingStatus.PROCESSING: frozenset(
            {PendingStatus.PENDING, PendingStatus.EXECUTED, PendingStatus.SKIPPED}
        ),
        PendingStatus.EXECUTED: frozenset({PendingStatus.SKIPPED}),
        PendingStatus.SKIPPED: frozenset({PendingStatus.PENDING}),
    }
)

# What may still fire.
WAITING: Final = frozenset({PendingStatus.PENDING, PendingStatus.PROCESSING})

# A row that was skipped so keeps its episode from being armed once more; any other may wait again.
SPENT: Final = frozenset({PendingSkip.EXPIRED, PendingSkip.CANCELLED})

# How a delayed run ended without acting, and what that makes of its row, which may have another run then.
STOOD_DOWN: Final[Mapping[SkipReason, PendingSkip]] = MappingProxyType(
    {
        SkipReason.INACTIVE: PendingSkip.RULE_INACTIVE,
        SkipReason.SUBJECT_GONE: PendingSkip.SUBJECT_GONE,
        SkipReason.EPISODE_MOVED: PendingSkip.EPISODE_MOVED,
        SkipReason.CONDITIONS_CHANGED: PendingSkip.CONDITIONS_CHANGED,
    }
)


def check_pending_move(origin: PendingStatus, to: PendingStatus) -> None:
    """Raise IllegalMove unless the table has this edge."""
    if to not in PENDING_MOVES[origin]:
        raise IllegalMove(f"{origin} -> {to}")


def has_expired(due_at: datetime, armed_at: datetime, oldest: datetime) -> bool:
    """Tell whether what could have fired before `oldest` is too late to fire: due by then, and waiting.

    What began to wait when it had long been due, since its events were read late, has its full time.
    """
    return max(due_at, armed_at) < oldest


def trigger_event_of(stored: Any) -> Event | None:
    """Read the event that armed a row, as it is stored with it; None where that is no event."""
    try:
        event = event_from_json(stored)
        told: tuple[object, ...] = (event.stamp, event.key, event.hash)
        payload: object = event.payload
        return event if all(told) and isinstance(payload, Mapping) else None
    except (BadEvent, AttributeError, LookupError, TypeError, ValueError):
        return None


def source_id_again(pending_id: str, run_id: str) -> str:
    """Name what makes a second run of a row, whose first one stood down, the only one of its kind."""
    return f"{pending_id}:{run_id}"


def pending_id_of(source_id: str) -> str:
    """Name the row that a delayed run was made for, by the run's `source_id`."""
    return source_id.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Episode:
    """A stretch in which an automation's conditions hold for a subject, or in which nobody answers.

    `key` names it for ever; its clock runs from `started_at`. `anchor_stamp` is that of the message that it
    hangs on (`message_id`), of a state that of the write which began it.
    """

    anchor: Anchor
    key: str
    started_at: datetime
    anchor_stamp: Stamp
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class PendingRow:
    """A pending execution as it is stored.

    `trigger_event` is the event that armed it, whole, as `event_to_json` writes it. `version` rises with each
    change. `armed_at` is when it began to wait; for another message of its episode, or once more after that
    had ended, it begins anew. `ended_at` is when its episode ended: until then an executed, expired or
    cancelled row keeps the episode from firing a second time.
    """

    id: str
    workspace_id: str
    automation_id: str
    subject_type: str
    subject_id: str
    episode: Episode
    trigger_event: Mapping[str, Any]
    due_at: datetime
    status: PendingStatus
    skip_reason: PendingSkip | None
    run_id: str | None
    version: int
    armed_at: datetime
    claimed_at: datetime | None
    ended_at: datetime | None
    created_at: datetime
    updated_at: datetime
