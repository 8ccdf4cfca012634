"""The journal.

Run threads hand over what happened, one writer thread commits all that waits as one transaction.

There is no timer: a lone record is committed at once, and while a commit is under way the next batch
gathers. The writer also renews the leases of the runs that this process holds. What it wrote is on rows
before anybody is told.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipeline.after_commit import AfterCommit
from pipeline.parts import Parts
from pipeline.recording import Written, write_batch
from pipeline.renewal import Renewal
from pipeline.settling import tell_of
from pipeline.verdicts import Record, Standing, Ticket, Verdict
from shared.db.faults import DATA_FAULTS, is_data_fault
from shared.db.history import Recorded, WrittenLine, recorded
from shared.errors import KnockonError
from shared.faults import FaultPoint, passed
from shared.logs import get_logger
from shared.model.runs import Failed, LogLine, RunError

log = get_logger("pipeline")

WAITING_MAX: Final = 200
BATCH_MAX: Final = 200
PAUSES_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
UNRECORDABLE: Final = "UNRECORDABLE"


class Journal:
    """The bounded line of tickets and its writer."""

    def __init__(self, parts: Parts, after: AfterCommit, renewal: Renewal) -> None:
        """Start nothing yet."""
        self._parts = parts
        self._after = after
        self._renewal = renewal
        self._waiting: queue.Queue[Ticket | None] = queue.Queue(WAITING_MAX)
        self._thread = threading.Thread(target=self._loop, name="journal", daemon=True)

    def start(self) -> None:
        """Start the writer."""
        self._thread.start()

    def is_alive(self) -> bool:
        """Tell whether the writer still works; without it the process must end."""
        return self._thread.is_alive()

    def hand_over(self, record: Record, settled: Callable[[Verdict], None] | None = None) -> Ticket:
        """Line a record up and give its ticket; waits while the line is full."""
        ticket = Ticket(record, settled)
        self._waiting.put(ticket)
        return ticket

    def close(self, timeout_s: float) -> None:
        """Write what waits, within the time, and end the writer."""
        try:
            self._waiting.put(None, timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _loop(self) -> None:
        is_closing = False
        while not is_closing:
            batch = self._take()
            is_closing = None in batch
            tickets = [ticket for ticket in batch if ticket is not None]
            if tickets:
                self._write(tickets)
            self._renewal.renew_if_due()

    def _take(self) -> list[Ticket | None]:
        try:
            batch = [self._waiting.get(timeout=self._renewal.due_s())]
        except queue.Empty:
            return []
        while len(batch) < BATCH_MAX:
            try:
                batch.append(self._waiting.get_nowait())
            except queue.Empty:
                break
        return batch

    def _write(self, tickets: Sequence[Ticket]) -> None:
        try:
            written = self._commit(tickets)
        except (*DATA_FAULTS, KnockonError) as error:
            self._halve(tickets, error)
            return
        for ticket, verdict in zip(tickets, written.verdicts, strict=True):
            ticket.settle(verdict)
        tell_of(self._parts.settlers, written.ended)
        self._after.add(written)

    def _commit(self, tickets: Sequence[Ticket]) -> Written:
        """Commit a batch; while SQL is away, try again and again. Raises what the data is to blame for."""
        records = [ticket.record for ticket in tickets]
        work = self._write_all
        for pause_s in chain(PAUSES_S, repeat(PAUSES_S[-1])):
            try:
                written = self._parts.database.transact(partial(work, records))
            except DBAPIError as error:
                if is_data_fault(error):
                    raise
                log.warning("journal_waited", error=str(error.orig)[:200], pause_s=pause_s)
                threading.Event().wait(pause_s)
                work = self._write_missing
            else:
                passed(FaultPoint.JOURNAL_AFTER_COMMIT)
                return written
        raise AssertionError("an endless loop ended")

    def _write_all(self, records: Sequence[Record], conn: Connection) -> Written:
        parts = self._parts
        return write_batch(conn, records, parts.owner, parts.clock.now(), parts.settlers)

    def _write_missing(self, records: Sequence[Record], conn: Connection) -> Written:
        """Write what is not on record yet: the answer of the COMMIT before may have been lost."""
        done = _already(conn, records)
        fresh = self._write_all([record for at, record in enumerate(records) if at not in done], conn)
        verdicts = iter(fresh.verdicts)
        fresh.verdicts = [done[at] if at in done else next(verdicts) for at in range(len(records))]
        return fresh

    def _halve(self, tickets: Sequence[Ticket], error: Exception) -> None:
        """Find the record that SQL cannot take and end its run with UNRECORDABLE.

        Its neighbours are written.
        """
        if len(tickets) > 1:
            middle = len(tickets) // 2
            self._write(tickets[:middle])
            self._write(tickets[middle:])
            return
        ticket = tickets[0]
        log.error("record_unwritable", run_id=ticket.record.run.claim.run_id, error=type(error).__name__)
        try:
            self._after.add(self._commit([Ticket(_unrecordable(ticket.record, error))]))
        except (*DATA_FAULTS, KnockonError) as second:
            log.error("run_left_to_its_lease", error=type(second).__name__)
        ticket.settle(Verdict(Standing.ENDED))


def _already(conn: Connection, records: Sequence[Record]) -> dict[int, Verdict]:
    """Find the records that are there, by their place in the batch."""
    lines = [line for record in records if (line := _only_line(record))]
    found = recorded(conn, {record.run.claim for record in records}, lines)
    verdicts = ((at, _verdict(record, found)) for at, record in enumerate(records))
    return {at: verdict for at, verdict in verdicts if verdict is not None}


def _verdict(record: Record, found: Recorded) -> Verdict | None:
    """Say what became of a record that is there: by its checkpoint, its attempt, or its first line."""
    run_id = record.run.claim.run_id
    if record.done is not None and (run_id, record.done.position) in found.actions:
        return Verdict(Standing.WRITTEN, found.actions[run_id, record.done.position])
    if record.run.claim in found.attempts:
        return Verdict(Standing.WRITTEN if record.outcome is not None else Standing.ENDED)
    return Verdict(Standing.WRITTEN) if _only_line(record) in found.lines else None


def _only_line(record: Record) -> WrittenLine | None:
    """Name a record that is nothing but log lines by the first of them."""
    if record.done is not None or record.outcome is not None or not record.logs:
        return None
    return record.run.claim.run_id, record.logs[0].message, record.logs[0].at


def _unrecordable(record: Record, error: Exception) -> Record:
    text = f"the outcome could not be stored ({type(error).__name__})"
    line = LogLine("error", "run failed", record.at, {"code": UNRECORDABLE})
    outcome = Failed(RunError(UNRECORDABLE, text, record.done.position if record.done else None))
    return Record(record.run, record.automation_name, record.at, logs=(line,), outcome=outcome)
