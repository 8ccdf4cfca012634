"""The states of a run and the legal moves between them. Code, tests and the diagram derive from here."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from shared.errors import IllegalMove


class RunStatus(StrEnum):
    """Where a run stands."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DEAD_LETTER = "DEAD_LETTER"
    CANCELLED = "CANCELLED"


class SkipReason(StrEnum):
    """Why a run that SUCCEEDED did nothing."""

    CONDITIONS = "conditions"
    SELF_TRIGGER = "self_trigger"
    DEPTH_LIMIT = "depth_limit"
    INACTIVE = "inactive"
    SUBJECT_GONE = "subject_gone"
    EPISODE_MOVED = "episode_moved"
    CONDITIONS_CHANGED = "conditions_changed"
    CONVERSATION_CLOSED = "conversation_closed"
    CONVERSATION_GONE = "conversation_gone"
    CUSTOMER_REPLIED = "customer_replied"
    SUPERSEDED = "superseded"
    AGENT_GONE = "agent_gone"
    CONFIG_CHANGED = "config_changed"
    DISARMED = "disarmed"


MOVES: Final[Mapping[RunStatus, frozenset[RunStatus]]] = MappingProxyType(
    {
        RunStatus.PENDING: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED}),
        RunStatus.RUNNING: frozenset(
            {RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.PENDING, RunStatus.DEAD_LETTER}
        ),
        RunStatus.FAILED: frozenset({RunStatus.PENDING, RunStatus.DEAD_LETTER}),
        RunStatus.DEAD_LETTER: frozenset({RunStatus.PENDING}),
        RunStatus.SUCCEEDED: frozenset(),
        RunStatus.CANCELLED: frozenset(),
    }
)

ENDED: Final = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.DEAD_LETTER, RunStatus.CANCELLED})


def check_move(origin: RunStatus, to: RunStatus) -> None:
    """Raise IllegalMove unless the table has this edge."""
    if to not in MOVES[origin]:
        raise IllegalMove(f"{origin} -> {to}")
