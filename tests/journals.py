"""What tests of the journal share: a journal on a room's parts, its records, and SQL that goes away."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from pipeline.after_commit import AfterCommit
from pipeline.held import HeldRuns
from pipeline.journal import Journal
from pipeline.renewal import Renewal
from pipeline.verdicts import Record
from shared.errors import ActionError
from shared.model.effects import Effect
from shared.model.runs import ActionDone, ClaimedRun, Failed, LogLine, Outcome, RunError, Succeeded
from tests.rooms import Room

DONE = Succeeded(None, {})


@dataclass(frozen=True)
class Desk:
    """A journal that is running, and the book of runs whose leases it renews."""

    journal: Journal
    held: HeldRuns


@contextmanager
def running_journal(room: Room) -> Iterator[Desk]:
    """Start a journal and what follows its commits; close both at the end."""
    held = HeldRuns()
    after = AfterCommit(room.parts)
    journal = Journal(room.parts, after, Renewal(room.parts, held))
    after.start()
    journal.start()
    try:
        yield Desk(journal, held)
    finally:
        journal.close(5)
        after.close(5)


def note(run: ClaimedRun, message: str = "a line") -> Record:
    """Make a record that is nothing but a log line."""
    now = datetime.now(UTC)
    return Record(run, "An automation", now, logs=(LogLine("info", message, now),))


def acted(run: ClaimedRun, *effects: Effect, position: int = 1, **parts: Any) -> Record:
    """Make the record of an action that succeeded, with its effects; `outcome` ends the run with it."""
    now = datetime.now(UTC)
    output: Mapping[str, Any] = parts.pop("output", {})
    type_ = parts.pop("type", "UPDATE_RECORD")
    return Record(
        run,
        "An automation",
        now,
        logs=(LogLine("info", "action done", now),),
        done=ActionDone(position, type_, output, effects, now, now),
        refused=lambda error: failed(run, error),
        **parts,
    )


def ended(run: ClaimedRun, outcome: Outcome = DONE) -> Record:
    """Make the record of an end without an action."""
    now = datetime.now(UTC)
    return Record(run, "An automation", now, logs=(LogLine("info", "the end", now),), outcome=outcome)


def failed(run: ClaimedRun, error: ActionError) -> Record:
    """Make the record of an action that was refused."""
    return ended(run, Failed(RunError(error.code, error.message, 1)))


@dataclass
class Line:
    """The way to SQL. `begun` counts transactions; `away` begins fail; `lost` commits succeed unanswered.

    While `gate` is cleared, commits wait for it.
    """

    begun: int = 0
    away: int = 0
    lost: int = 0
    gate: Event = field(default_factory=Event)
    waiting: Event = field(default_factory=Event)

    def on_begin(self, conn: Connection) -> None:
        self.begun += 1
        if self.away > 0:
            self.away -= 1
            raise gone()

    def on_commit(self, conn: Connection) -> None:
        self.waiting.set()
        assert self.gate.wait(20)
        if self.lost > 0:
            self.lost -= 1
            conn.connection.commit()
            raise gone()


@contextmanager
def disturbed(room: Room) -> Iterator[Line]:
    """Put a line that a test can disturb between a room and its database; the gate is open at first."""
    line = Line()
    line.gate.set()
    engine = room.database._engine
    event.listen(engine, "begin", line.on_begin)
    event.listen(engine, "commit", line.on_commit)
    yield line
    event.remove(engine, "begin", line.on_begin)
    event.remove(engine, "commit", line.on_commit)


def gone() -> OperationalError:
    """Make the error of a server that does not answer."""
    return OperationalError("BEGIN", {}, sqlite3.OperationalError("the server is gone"))
