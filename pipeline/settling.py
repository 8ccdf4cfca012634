"""What waited is looked at once more before it acts, and its row is told what became of it.

Twice: at the gate of each attempt, and under the locks of the transaction that carries the act.

Each source of runs whose rows wait has a settler. Whoever starts the engine hands them over, and a run of
such a source without its settler does not act.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from shared.db.engine import is_outage
from shared.logs import get_logger
from shared.model.messages import Message
from shared.model.moves import SkipReason
from shared.model.runs import ClaimedRun, Failed, HandedBack, Outcome, RunError, RunSource, Succeeded

WAITED: Final = (RunSource.DELAYED, RunSource.IDLE_STEP)
AGAIN_AFTER: Final = timedelta(seconds=2)
NO_SETTLER: Final = "NO_SETTLER"

log = get_logger("pipeline")


@dataclass(frozen=True, slots=True)
class StandDown:
    """Why a run is not to act after all; `why` tells a person more, in JSON types."""

    reason: SkipReason
    why: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AlreadySaid:
    """The act is done and has left this message; the run goes on behind it without doing it again."""

    message: Message


@dataclass(frozen=True, slots=True)
class Settled:
    """How an attempt ended; `message` is the one that its act has left, where it acted."""

    run: ClaimedRun
    outcome: Outcome
    message: Message | None


class Settler(Protocol):
    """Knows the rows of one source."""

    def stand_downs(self, runs: Sequence[ClaimedRun]) -> Mapping[str, StandDown]:
        """Look at rows as they are now; give, by run id, the runs that are not to act."""
        ...

    def bars(self, conn: Connection, runs: Sequence[ClaimedRun]) -> Mapping[str, StandDown | AlreadySaid]:
        """Look once more in the transaction of the acts; give, by run id, those that are not to be entered.

        The subjects of the acts are locked.
        """
        ...

    def settle(self, conn: Connection, ended: Sequence[Settled], now: datetime) -> Counter[str]:
        """Have the rows say how attempts ended, in the transaction that ends them.

        Give how much to add to which keys of Redis once it is committed.
        """
        ...

    def tell(self, ended: Sequence[Settled]) -> None:
        """Log what a person should know of it, after the commit."""
        ...


Settlers = Mapping[RunSource, Settler]
NO_SETTLERS: Final[Settlers] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Stopped:
    """How a run ends at its gate, and what its log says beside that."""

    outcome: Succeeded | Failed | HandedBack
    why: Mapping[str, Any] | None = field(default=None)


def stopped_at_gate(settlers: Settlers, runs: Sequence[ClaimedRun], now: datetime) -> dict[str, Stopped]:
    """Ask the settlers about runs that have waited and have not acted yet; give those that are to end.

    While SQL is away they are handed back, and asked about again later.
    """
    stopped: dict[str, Stopped] = {}
    for source in WAITED:
        asked = [run for run in runs if run.source is source and not run.finished]
        if asked:
            stopped |= _ask(settlers.get(source), asked, now)
    return stopped


def _ask(settler: Settler | None, runs: Sequence[ClaimedRun], now: datetime) -> dict[str, Stopped]:
    if settler is None:
        error = RunError(NO_SETTLER, f"this process cannot settle {runs[0].source} runs", None)
        return {run.claim.run_id: Stopped(Failed(error)) for run in runs}
    try:
        found = settler.stand_downs(runs)
    except DBAPIError as error:
        if not is_outage(error):
            raise
        log.warning("gate_waited", runs=len(runs), error=str(error.orig)[:200])
        return {run.claim.run_id: Stopped(HandedBack(now + AGAIN_AFTER)) for run in runs}
    return {run_id: Stopped(Succeeded(each.reason, {}), each.why) for run_id, each in found.items()}


def bars_of(
    conn: Connection, settlers: Settlers, runs: Sequence[ClaimedRun]
) -> dict[str, StandDown | AlreadySaid]:
    """Ask each source about the acts that are about to be entered; give those that are not to be."""
    bars: dict[str, StandDown | AlreadySaid] = {}
    for source, settler in settlers.items():
        asked = [run for run in runs if run.source is source]
        if asked:
            bars |= settler.bars(conn, asked)
    return bars


def settle_rows(
    conn: Connection, settlers: Settlers, ended: Sequence[Settled], now: datetime
) -> Counter[str]:
    """Have each source's rows say how their attempts ended; give what is to be counted of it."""
    counts: Counter[str] = Counter()
    for source, settler in settlers.items():
        own = [each for each in ended if each.run.source is source]
        if own:
            counts += settler.settle(conn, own, now)
    return counts


def tell_of(settlers: Settlers, ended: Sequence[Settled]) -> None:
    """Have each source log what its attempts came to."""
    for source, settler in settlers.items():
        own = [each for each in ended if each.run.source is source]
        if own:
            settler.tell(own)
