"""What waited is looked at once more right before it acts, and its row is told what became of it.

Each source of runs whose rows wait has a settler. Whoever starts the engine hands them over, and a run of
such a source without its settler does not act.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from shared.db.engine import is_outage
from shared.logs import get_logger
from shared.model.moves import SkipReason
from shared.model.runs import ClaimedRun, Failed, HandedBack, RunError, RunSource, Succeeded

WAITED: Final = frozenset({RunSource.DELAYED})
AGAIN_AFTER: Final = timedelta(seconds=2)
NO_SETTLER: Final = "NO_SETTLER"

log = get_logger("pipeline")


@dataclass(frozen=True, slots=True)
class StandDown:
    """Why a run is not to act after all; `why` tells a person more, in JSON types."""

    reason: SkipReason
    why: Mapping[str, Any] | None = None


class Settler(Protocol):
    """Knows the rows of one source."""

    def stand_downs(self, runs: Sequence[ClaimedRun]) -> Mapping[str, StandDown]:
        """Look at rows as they are now; give, by run id, the runs that are not to act."""
        ...

    def correct(
        self, conn: Connection, skipped: Sequence[tuple[ClaimedRun, SkipReason]], now: datetime
    ) -> None:
        """Note on the rows that their runs ended without acting, in the transaction that ends the runs."""
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


def correct_rows(
    conn: Connection,
    settlers: Settlers,
    ended: Sequence[tuple[ClaimedRun, SkipReason]],
    now: datetime,
) -> None:
    """Have each source's rows say that their runs were skipped."""
    for source, settler in settlers.items():
        skipped = [(run, reason) for run, reason in ended if run.source is source]
        if skipped:
            settler.correct(conn, skipped, now)
