"""What run threads hand to the journal, and what it answers."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any

from pipeline.settling import StandDown
from shared.errors import ActionError
from shared.model.runs import ActionDone, ClaimedRun, LogLine, Outcome


@dataclass(frozen=True, slots=True)
class Mark:
    """What every act of a run leaves in a conversation: a message that carries these parameters.

    Where the act says nothing it is a private one without a text, of which no event tells.
    """

    conversation_id: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """One step of a run to be written.

    Log lines, a finished action, and the outcome if the attempt ends with it.

    `refused` gives the record to write instead when a change to our own tables is not possible any more,
    `stood_down` the one for an act that is not to be after all;
    `own_events` are the ids of the events that this run's earlier actions emitted; `mark` is its plan's.
    """

    run: ClaimedRun
    automation_name: str
    at: datetime
    logs: tuple[LogLine, ...] = ()
    done: ActionDone | None = None
    outcome: Outcome | None = None
    failed_type: str | None = None
    refused: "Callable[[ActionError], Record] | None" = None
    stood_down: "Callable[[StandDown], Record] | None" = None
    own_events: frozenset[str] = frozenset()
    mark: Mark | None = None


class Standing(Enum):
    """What became of a record."""

    WRITTEN = auto()
    FENCED = auto()
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The journal's answer. FENCED: another process owns the run now; write nothing more.

    ENDED: the attempt was ended with what `refused` gave. `output` is the action's as it was stored,
    `stop_reason` is set when a person wants the run to end.
    """

    standing: Standing
    output: Mapping[str, Any] = field(default_factory=dict)
    stop_reason: str | None = None


class Ticket:
    """A record on its way through the journal; the run thread may wait for its verdict."""

    def __init__(self, record: Record, settled: "Callable[[Verdict], None] | None" = None) -> None:
        """Start without a verdict; `settled` is called with it, in the writer's thread, and nobody waits."""
        self.record = record
        self._settled = settled
        self._verdict: Verdict | None = None
        self._written = threading.Event() if settled is None else None

    def settle(self, verdict: Verdict) -> None:
        """Give the verdict and wake whoever waits for it."""
        self._verdict = verdict
        if self._settled is not None:
            self._settled(verdict)
        if self._written is not None:
            self._written.set()

    def wait(self) -> Verdict:
        """Wait until the record is committed, however long SQL is away; not for a ticket with `settled`."""
        assert self._written is not None
        self._written.wait()
        assert self._verdict is not None
        return self._verdict
