"""What an engine is handed to settle steps of idle sequences (docs/idle-sequences.md, "Firing")."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

from sqlalchemy import Connection

from pipeline.settling import AlreadySaid, Settled, StandDown
from shared.db.engine import Database
from shared.db.idle_acts import find_idle, find_said
from shared.db.idle_steps import Settlement, insert_idle, lock_idle, settle_idle
from shared.db.persons_moves import CANCELLED
from shared.errors import KnockonError
from shared.keys import Keys, idle_key
from shared.logs import get_logger
from shared.model.events import event_from_json
from shared.model.idle_events import DueStep, idle_step_of
from shared.model.idle_steps import IdleAction, IdleResult, IdleStatus, IdleStepRow, IdleStop
from shared.model.moves import SkipReason
from shared.model.runs import ClaimedRun, DeadLettered, Failed, HandedBack, Outcome, Retried, Succeeded
from shared.rules.idling import IdleFacts, is_edited, status_of, stop_of
from shared.services.idle_going_on import Fired, arm_next
from shared.services.idling import read_idle_facts

# Where a step stands whose run may act: it is the run's, or a person has its dead letter replayed.
MAY_ACT: Final = frozenset({IdleStatus.PROCESSING, IdleStatus.FAILED})

# A person's cancel is no skip of its run.
_SKIPS: Final[Mapping[IdleStop, SkipReason]] = MappingProxyType(
    {stop: SkipReason(stop.value) for stop in IdleStop if stop is not IdleStop.CANCELLED}
)
_STOPS: Final[Mapping[SkipReason, IdleStop]] = MappingProxyType(
    {reason: stop for stop, reason in _SKIPS.items()}
)

log: Final = get_logger("pipeline")


class IdleSettler:
    """Looks at a step's conversation and rule before it acts, and moves the step with its run."""

    def __init__(self, database: Database, keys: Keys) -> None:
        """Remember nothing of any step."""
        self._database = database
        self._keys = keys

    def stand_downs(self, runs: Sequence[ClaimedRun]) -> Mapping[str, StandDown]:
        """Look at steps, conversations and rules as they are now; give, by run id, those not to act."""
        with self._database.read() as conn:
            rows = find_idle(conn, (run.source_id for run in runs))
            facts = read_idle_facts(conn, list(rows.values()))
        return _stand_downs(runs, rows, facts)

    def bars(self, conn: Connection, runs: Sequence[ClaimedRun]) -> Mapping[str, StandDown | AlreadySaid]:
        """Look again, with the conversations locked: what is stored of a reply by now stops the act."""
        rows = lock_idle(conn, (run.source_id for run in runs))
        facts = read_idle_facts(conn, list(rows.values()))
        bars: dict[str, StandDown | AlreadySaid] = dict(_stand_downs(runs, rows, facts))
        said = find_said(conn, rows.values())
        for run in runs:
            if run.claim.run_id not in bars and run.source_id in said:
                bars[run.claim.run_id] = AlreadySaid(said[run.source_id])
        return bars

    def settle(self, conn: Connection, ended: Sequence[Settled], now: datetime) -> Counter[str]:
        """Move the steps of runs that ended, and let what follows the fired ones wait."""
        ends = {each.run.source_id: (each, end) for each in ended if (end := _end_of(each.outcome))}
        rows = lock_idle(conn, ends) if ends else {}
        moves = [Settlement(id_, rows[id_].version, *ends[id_][1]) for id_ in sorted(rows)]
        moved = settle_idle(conn, moves, now) if moves else frozenset[str]()
        fired = [
            Fired(rows[id_], each.run, each.message)
            for id_, (each, (status, _)) in ends.items()
            if id_ in moved and status is IdleStatus.FIRED and each.message is not None
        ]
        if fired:
            insert_idle(conn, arm_next(conn, fired, now))
        results = (_results(*ends[id_]) for id_ in moved)
        return Counter(idle_key(self._keys, result) for found in results for result in found)

    def tell(self, ended: Sequence[Settled]) -> None:
        """Log each attempt that failed, without a word of what the step says."""
        for each in ended:
            if isinstance(each.outcome, Failed | Retried | DeadLettered):
                log.warning("idle_step_failed", code=each.outcome.error.code, **_facts(each.run))


def _facts(run: ClaimedRun) -> dict[str, str | int | None]:
    facts: dict[str, str | int | None] = {"run_id": run.claim.run_id, "attempt": run.retry_count + 1}
    step = _step_of(run)
    if step is None:
        return facts
    return {
        **facts,
        "conversation_id": step.conversation_id,
        "agent_id": step.agent_id,
        "step_index": step.step_index,
    }


def _stand_downs(
    runs: Sequence[ClaimedRun], rows: Mapping[str, IdleStepRow], facts: IdleFacts
) -> dict[str, StandDown]:
    found = ((run.claim.run_id, _reason(run, rows.get(run.source_id), facts)) for run in runs)
    return {run_id: StandDown(reason) for run_id, reason in found if reason is not None}


def _reason(run: ClaimedRun, row: IdleStepRow | None, facts: IdleFacts) -> SkipReason | None:
    """Say why a step is not to act; what is gone, or has ended by itself, is nobody's any more.

    Nor does it act where its rule was edited since: what was taken back is not said.
    """
    if row is None:
        return SkipReason.DISARMED
    if row.status not in MAY_ACT:
        return _SKIPS.get(row.reason, SkipReason.DISARMED) if row.reason else SkipReason.DISARMED
    stop = stop_of(row, facts)
    if stop is not None:
        return _SKIPS[stop]
    step = _step_of(run)
    return SkipReason.CONFIG_CHANGED if step is not None and is_edited(step, row, facts) else None


def _step_of(run: ClaimedRun) -> DueStep | None:
    """Read the step that a run is of; None for one that cannot be read: its plan says what is wrong."""
    try:
        return idle_step_of(event_from_json(run.event))
    except (KnockonError, LookupError, TypeError, ValueError):
        return None


def _end_of(outcome: Outcome) -> tuple[IdleStatus, IdleStop | None] | None:
    """Say where a run's end leaves its step; None where the run goes on."""
    match outcome:
        case Succeeded(skipped=None):
            return IdleStatus.FIRED, None
        case Succeeded(skipped=reason):
            stop = _STOPS.get(reason or SkipReason.CONFIG_CHANGED, IdleStop.CONFIG_CHANGED)
            return status_of(stop), stop
        case Failed(error=error) if error.code == CANCELLED:
            return IdleStatus.STOPPED, IdleStop.CANCELLED
        case Failed() | DeadLettered():
            return IdleStatus.FAILED, None
        case Retried() | HandedBack():
            return None


def _results(ended: Settled, end: tuple[IdleStatus, IdleStop | None]) -> list[IdleResult]:
    status, stop = end
    if status is IdleStatus.FAILED:
        return [IdleResult.FAILED]
    if status is not IdleStatus.FIRED:
        return [IdleResult.RESET] if stop is IdleStop.CUSTOMER_REPLIED else []
    is_closing = idle_step_of(event_from_json(ended.run.event)).action is IdleAction.RESOLVE
    return [IdleResult.FIRED, IdleResult.RESOLVED] if is_closing else [IdleResult.FIRED]
