"""What is deleted once its time is over: runs by their end, the rest by its age (docs/operations.md, Limits).

A pass begins every hour and goes on in short turns, so that neither matching nor other duties wait for it.
One that is broken off has lost nothing: each transaction takes a run with all that belongs to it, and the
next pass finds what is left.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Final

from shared.db.ageing import Ageing, forget
from shared.db.idempotency import KEPT as IDEMPOTENCY_KEYS_KEPT
from shared.db.retention import FIRST, Expiry, count_children, delete_lines, delete_runs, walk_runs
from shared.faults import FaultPoint, passed
from shared.logs import get_logger
from watchdog.parts import Parts

EVERY_S: Final = 3_600.0
TURN_EVERY_S: Final = 2.0
TURN_S: Final = 0.5
BATCH: Final = 5_000
COUNTED: Final = 500

DEAD_LETTERS_TIMES: Final = 3
MESSAGES_TIMES: Final = 3
AUDIT_KEPT: Final = timedelta(days=365)
NOTIFICATIONS_KEPT: Final = timedelta(days=90)
ALERTS_KEPT: Final = timedelta(days=30)
ALERT_SENDS_KEPT: Final = timedelta(days=30)
ALERT_GROUPS_KEPT: Final = timedelta(days=90)
BULK_OPERATIONS_KEPT: Final = timedelta(days=30)

Counts = Mapping[str, int]

log: Final = get_logger("watchdog")


@dataclass(frozen=True, slots=True)
class Retention:
    """How long things are kept: `runs` is RETENTION_DAYS, and the measure of all that belongs to runs."""

    runs: timedelta

    @property
    def dead_letters(self) -> timedelta:
        """Say how long dead letters are kept."""
        return self.runs * DEAD_LETTERS_TIMES

    @property
    def by_age(self) -> Mapping[Ageing, timedelta]:
        """Say how long everything else is kept, in the order in which it is deleted."""
        return MappingProxyType(
            {
                Ageing.LOGS_ALONE: self.runs,
                Ageing.MESSAGES: self.runs * MESSAGES_TIMES,
                Ageing.NOTIFICATIONS: NOTIFICATIONS_KEPT,
                Ageing.AUDIT: AUDIT_KEPT,
                Ageing.ALERTS: ALERTS_KEPT,
                Ageing.ALERT_SENDS: ALERT_SENDS_KEPT,
                Ageing.ALERT_GROUPS: ALERT_GROUPS_KEPT,
                Ageing.BULK_OPERATIONS: BULK_OPERATIONS_KEPT,
                Ageing.PENDING_EXECUTIONS: self.runs,
                Ageing.IDLE_STEPS: self.runs,
                Ageing.VERSIONS: self.runs,
                Ageing.IDEMPOTENCY_KEYS: IDEMPOTENCY_KEYS_KEPT,
            }
        )


class Pruner:
    """Deletes what is over, in turns of half a second; each turn goes on where the last one stopped."""

    def __init__(self, parts: Parts, batch: int = BATCH) -> None:
        """Begin the first pass with the first turn; `batch` is the most rows of one transaction."""
        self._parts = parts
        self._batch = batch
        self._pass: Iterator[Counts] | None = None
        self._next_pass = parts.clock.monotonic()
        self._deleted = Counter[str]()

    def take_turn(self) -> None:
        """Go on with the pass that is under way, or begin one whose hour has come.

        A pass that breaks off, because SQL is away, begins anew with the next turn.
        """
        begun = self._parts.clock.monotonic()
        steps, self._pass = self._pass, None
        if steps is None:
            if begun < self._next_pass:
                return
            self._deleted.clear()
            steps = self._steps()
        self._next_pass = begun
        self._pass = self._go_on(steps, begun + TURN_S)
        if self._pass is None:
            self._next_pass = begun + EVERY_S

    def _go_on(self, steps: Iterator[Counts], until: float) -> Iterator[Counts] | None:
        """Do steps until the turn is over; give what is left of them, None at the end of the pass."""
        for counts in steps:
            self._deleted.update(counts)
            if any(counts.values()):
                passed(FaultPoint.RETENTION_BETWEEN_BATCHES)
            if self._parts.clock.monotonic() >= until:
                return steps
        found = {table: count for table, count in self._deleted.items() if count}
        if found:
            log.info("history_pruned", **found)
        return None

    def _steps(self) -> Iterator[Counts]:
        """Do one transaction after another, and tell what each deleted."""
        now = self._parts.clock.now()
        kept = Retention(timedelta(days=self._parts.settings.retention_days))
        yield from self._prune_runs(Expiry(now - kept.runs, now - kept.dead_letters))
        for what, span in kept.by_age.items():
            before = now - span
            deleted = self._batch
            while deleted == self._batch:
                deleted = self._forget(what, before)
                yield {what.value: deleted}
        yield {"handles": self._parts.queue.drop_leftovers()}

    def _prune_runs(self, expiry: Expiry) -> Iterator[Counts]:
        """Walk over the runs that may be over, and delete those that are, parents and children together."""
        database = self._parts.database
        after: str | None = FIRST
        while after is not None:
            with database.read() as conn:
                page = walk_runs(conn, expiry, after=after, most=self._batch)
            yield {}
            for first in range(0, len(page.expired), COUNTED):
                yield from self._delete(page.expired[first : first + COUNTED], expiry)
            after = page.last

    def _delete(self, run_ids: Sequence[str], expiry: Expiry) -> Iterator[Counts]:
        database = self._parts.database
        with database.read() as conn:
            children = count_children(conn, run_ids)
        for batch in batches(run_ids, children, self._batch):
            if len(batch) == 1:
                yield from self._shorten(batch[0], children.get(batch[0], 0), expiry)
            yield database.transact(partial(delete_runs, run_ids=batch, expiry=expiry))

    def _shorten(self, run_id: str, rows: int, expiry: Expiry) -> Iterator[Counts]:
        """Take lines off the log of a run that has more rows than one transaction may take."""
        shorten = partial(delete_lines, run_id=run_id, expiry=expiry, most=self._batch)
        while rows >= self._batch and (deleted := self._parts.database.transact(shorten)):
            rows -= deleted
            yield {"automation_logs": deleted}

    def _forget(self, what: Ageing, before: datetime) -> int:
        return self._parts.database.transact(partial(forget, what=what, before=before, most=self._batch))


def batches(run_ids: Sequence[str], children: Mapping[str, int], most: int) -> Iterator[list[str]]:
    """Cut runs into batches of at most `most` rows, with what belongs to them; one run at the least."""
    batch: list[str] = []
    rows = 0
    for run_id in run_ids:
        own = 1 + children.get(run_id, 0)
        if batch and rows + own > most:
            yield batch
            batch, rows = [], 0
        batch.append(run_id)
        rows += own
    if batch:
        yield batch
