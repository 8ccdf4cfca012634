"""A deployment whose clock stands still until it is moved, and the timers' duties on it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from shared.db.types import read_instant, read_json
from shared.model.runs import QueueKind
from shared.services.automations import apply_changes
from shared.services.backends import Backends
from shared.services.definitions import Leftovers
from shared.settings import Settings
from shared.time.clock import ManualClock
from tests.people import CALLER, definition, opened_backends
from timers.schedules import Sweep
from timers.service import Timers

HOUR = timedelta(hours=1)


@dataclass
class Timekeeper:
    """What a test of schedules acts on and looks at. Instants are texts like `2026-03-01T09:00`, in UTC."""

    backends: Backends
    clock: ManualClock

    def apply(self, cron: str = "* * * * *", zone: str | None = None, **given: Any) -> str:
        """Apply an automation on a schedule, ACTIVE unless said otherwise, and give its id."""
        config = {"cron": cron} if zone is None else {"cron": cron, "timezone": zone}
        wanted = {
            "key": "tick",
            "trigger": {"type": "SCHEDULE", "config": config},
            "status": "ACTIVE",
            **given,
        }
        apply_changes(self.backends, CALLER, [definition(**wanted)], Leftovers.KEEP)
        (row,) = self.rows(
            "SELECT id FROM automations WHERE key = :key AND deleted_at IS NULL", key=wanted["key"]
        )
        return str(row.id)

    def move_to(self, instant: str) -> None:
        self.clock.advance(at(instant) - self.clock.now())

    def sweep(self, catchup: timedelta = HOUR) -> None:
        """Sweep once, as a process that has just started."""
        Sweep(self.backends, catchup).pass_once()

    def sweep_at(self, *instants: str) -> None:
        for instant in instants:
            self.move_to(instant)
            self.sweep()

    def timers(self, **settings: Any) -> Timers:
        """Give the loop of one process."""
        return Timers(Settings(_env_file=None, **settings), self.backends)

    def rows(self, query: str, **values: object) -> Sequence[Any]:
        with self.backends.database.read() as conn:
            return conn.execute(text(query), values).all()

    def change(self, statement: str, **values: object) -> None:
        with self.backends.database.begin() as conn:
            conn.execute(text(statement), values)

    def runs(self) -> Sequence[Any]:
        return self.rows("SELECT * FROM automation_runs ORDER BY created_at, id")

    def slots(self) -> list[str]:
        """Give the slots that runs were made for, in the order in which that happened."""
        return [row.source_id.partition(":")[2] for row in self.runs()]

    def next_fire(self, automation_id: str) -> datetime | None:
        """Give when an automation fires next; None where it has no schedule, or one without an end."""
        rows = self.rows("SELECT next_fire_at FROM schedules WHERE automation_id = :id", id=automation_id)
        return read_instant(rows[0].next_fire_at) if rows else None

    def missed(self) -> list[dict[str, Any]]:
        """Give what the log says of missed slots."""
        rows = self.rows("SELECT * FROM automation_logs WHERE message = 'schedule missed' ORDER BY id")
        assert all((row.level, row.run_id) == ("warning", None) for row in rows)
        return [read_json(row.data) for row in rows]

    def handles(self) -> int:
        return sum(self.backends.queue.depth(kind) for kind in QueueKind)


def at(instant: str) -> datetime:
    return datetime.fromisoformat(instant).replace(tzinfo=UTC)


@contextmanager
def open_timekeeper(database_url: str, redis_url: str, start: str) -> Iterator[Timekeeper]:
    """Open a deployment with the workspaces w1 and w2 whose clock shows `start`."""
    clock = ManualClock(at(start))
    with opened_backends(database_url, redis_url) as backends:
        yield Timekeeper(replace(backends, clock=clock), clock)
