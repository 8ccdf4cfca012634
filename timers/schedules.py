"""Due schedules become runs: one run a slot, in the transaction that moves the schedule on.

Any number of sweeps may go on at once. Row locks share the work out, and the unique index on a run's source
holds even where they do not: a second run of a slot cannot be made. A sweep that dies leaves all of its rows
due, or its runs to the watchdog, which gives them their handles.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from shared.db.history import insert_logs
from shared.db.persons_moves import WokenRun
from shared.db.runs_new import count_waiting, insert_runs
from shared.db.schedules import (
    BEGINNING,
    Advance,
    Position,
    ScheduleRow,
    advance_schedules,
    due_schedules,
    lock_due,
)
from shared.faults import FaultPoint, passed
from shared.ids import new_id
from shared.logs import get_logger
from shared.model.eventless import Start, make_run, schedule_event, slot_id
from shared.model.runs import NewRun, RunSource, queue_for
from shared.model.triggers import TriggerType
from shared.observations import Measure, Observations
from shared.services.backends import Backends
from shared.services.counting import count_up
from shared.services.schedules import UNREADABLE, due_slots_of, missed_log
from shared.services.waking import wake
from shared.time.slots import Turn, take_turn

BATCH: Final = 500

log: Final = get_logger("timers")


@dataclass(frozen=True, slots=True)
class DueTurn:
    """A schedule that is due, and what comes of it."""

    row: ScheduleRow
    turn: Turn


@dataclass(frozen=True, slots=True)
class Swept:
    """What one transaction did: the runs that it made, and how many schedules missed slots."""

    runs: Sequence[NewRun]
    missed: int


class Sweep:
    """Looks for due schedules. It remembers which it could not read, to tell of each once."""

    def __init__(self, backends: Backends, catchup: timedelta) -> None:
        """Have told of none yet; slots older than `catchup` do not fire."""
        self._backends = backends
        self._catchup = catchup
        self._unreadable: frozenset[ScheduleRow] = frozenset()
        self.lateness: Final = Observations(backends.keys)

    def pass_once(self) -> None:
        """Fire all that is due now. A second pass at the same instant finds nothing."""
        now = self._backends.clock.now()
        unreadable: set[ScheduleRow] = set()
        position = BEGINNING
        while True:
            with self._backends.database.read() as conn:
                rows = due_schedules(conn, position, now=now, most=BATCH)
            # Slots are computed before the transaction: no row is locked for as long as that takes.
            turns = [found for row in rows if (found := self._turn(row, now, unreadable))]
            if turns:
                self._settle(turns)
            if len(rows) < BATCH:
                break
            position = Position(rows[-1].next_fire_at or now, rows[-1].automation_id)
        self._unreadable = frozenset(unreadable)

    def _turn(self, row: ScheduleRow, now: datetime, unreadable: set[ScheduleRow]) -> DueTurn | None:
        try:
            due = due_slots_of(row, row.next_fire_at or now, now)
        except UNREADABLE as error:
            unreadable.add(row)
            if row not in self._unreadable:
                self._tell_unreadable(row, error)
            return None
        return DueTurn(row, take_turn(due, now, self._catchup))

    def _settle(self, turns: Sequence[DueTurn]) -> None:
        at = self._backends.clock.now()
        swept = self._backends.database.transact(lambda conn: _write(conn, turns, at))
        passed(FaultPoint.TIMERS_AFTER_COMMIT)
        if swept.missed:
            log.warning("schedules_missed", count=swept.missed)
        slots = {each.row.automation_id: each.turn.fires for each in turns}
        for run in swept.runs:
            self.lateness.add(Measure.SWEEP_LATENESS, at - (slots[run.automation_id or ""] or at))
        if swept.runs:
            wake(self._backends, [WokenRun(run.id, run.automation_id, run.queue) for run in swept.runs], at)
            log.info("schedules_fired", count=len(swept.runs))

    def _tell_unreadable(self, row: ScheduleRow, error: Exception) -> None:
        log.error("schedule_unreadable", automation_id=row.automation_id, reason=str(error))
        count_up(self._backends, {self._backends.keys.count("schedules_unreadable"): 1})


def _write(conn: Connection, turns: Sequence[DueTurn], at: datetime) -> Swept:
    versions = lock_due(conn, [each.row for each in turns])
    held = [each for each in turns if each.row.automation_id in versions]
    runs = _runs(conn, held, versions, at)
    new = insert_runs(conn, runs)
    missed = [missed_log(each.row, each.turn.missed, at) for each in held if each.turn.missed]
    insert_logs(conn, missed)
    advance_schedules(
        conn, [Advance(each.row.automation_id, each.turn.next, each.turn.fires) for each in held]
    )
    passed(FaultPoint.TIMERS_BEFORE_COMMIT)
    return Swept([run for run in runs if run.id in new], len(missed))


def _runs(
    conn: Connection, held: Sequence[DueTurn], versions: Mapping[str, int], at: datetime
) -> list[NewRun]:
    firing = [(each.row, each.turn.fires) for each in held if each.turn.fires]
    if not firing:
        return []
    waiting = Counter(count_waiting(conn, {row.workspace_id for row, _ in firing}))
    runs: list[NewRun] = []
    for row, slot in firing:
        waiting[row.workspace_id] += 1
        start = Start(
            automation_id=row.automation_id,
            version=versions[row.automation_id],
            trigger_type=TriggerType.SCHEDULE,
            source=RunSource.SCHEDULE,
            source_id=slot_id(row.automation_id, slot),
        )
        event = schedule_event(row.workspace_id, row.cron, slot, at)
        runs.append(make_run(new_id(), start, event, queue_for(waiting[row.workspace_id] - 1), at))
    return runs
