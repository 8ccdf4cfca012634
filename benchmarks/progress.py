"""What can be read of a program from outside: how far its runs have come, and when each step was."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks.contenders import Running
from benchmarks.sites import Site
from knockon.client import EventDraft, Publisher
from shared.db.engine import Database, open_database
from shared.db.sql import sql
from shared.db.types import must_instant
from tests.waiting import poll

STREAM_MAX: Final = 10_000_000
POLL_S: Final = 0.25
SLOWEST_PER_EVENT_S: Final = 0.1
LEAST_S: Final = 120.0

DONE: Final = sql("SELECT count(*) FROM automation_runs WHERE status = 'SUCCEEDED'")
MADE: Final = sql("SELECT count(*) FROM automation_runs")
LINES: Final = sql("SELECT count(*) FROM automation_logs")
SPAN: Final = sql("SELECT min(created_at) AS first, max(ended_at) AS last FROM automation_runs")
TIMES: Final = sql("SELECT event_key, created_at, ended_at FROM automation_runs")


@dataclass(frozen=True, slots=True)
class Times:
    """When a run was made and when it ended."""

    created_at: datetime
    ended_at: datetime


class Rows:
    """The rows that a program writes, under the names that all of them use."""

    def __init__(self, site: Site) -> None:
        """Open the database of a site."""
        self._database: Database = open_database(site.database_url, pool_size=1)

    def wait_done(self, wanted: int, running: Running) -> None:
        """Wait until so many runs have succeeded. Raises AssertionError when that takes far too long."""
        self._wait(lambda: self._number(DONE), wanted, running)
        assert self._number(MADE) == wanted, "there are more runs than events"

    def wait_made(self, wanted: int, running: Running, every_s: float = POLL_S) -> None:
        """Wait until there are so many runs, whatever their state."""
        self._wait(lambda: self._number(MADE), wanted, running, every_s)

    def made(self) -> int:
        """Count the runs, whatever their state."""
        return self._number(MADE)

    def lines(self) -> int:
        """Count the log lines."""
        return self._number(LINES)

    def span(self) -> tuple[datetime, datetime]:
        """Give when the first run was made and when the last one ended."""
        with self._database.read() as conn:
            row = SPAN.run(conn).one()
        return must_instant(row.first), must_instant(row.last)

    def times(self) -> dict[str, Times]:
        """Give each run's times by the id of its event."""
        with self._database.read() as conn:
            rows = TIMES.run(conn).all()
        return {
            row.event_key.removeprefix("id:"): Times(must_instant(row.created_at), must_instant(row.ended_at))
            for row in rows
        }

    def close(self) -> None:
        """Let the database go."""
        self._database.dispose()

    def _wait(self, count: Callable[[], int], wanted: int, running: Running, every_s: float = POLL_S) -> None:
        def is_there() -> bool:
            running.check()
            return count() >= wanted

        poll(is_there, max(LEAST_S, wanted * SLOWEST_PER_EVENT_S), every_s)

    def _number(self, statement: Any) -> int:
        with self._database.read() as conn:
            return int(statement.run(conn).scalar_one())


def publish(site: Site, drafts: Sequence[EventDraft]) -> None:
    """Put events on the stream as fast as it goes."""
    with Publisher(site.redis_url, maxlen=STREAM_MAX) as publisher:
        publisher.publish_many(drafts)


def publish_evenly(site: Site, drafts: Sequence[EventDraft], per_s: float) -> dict[str, datetime]:
    """Put so many events a second on the stream; give when each was published, by its id."""
    sent: dict[str, datetime] = {}
    pause = threading.Event()
    with Publisher(site.redis_url, maxlen=STREAM_MAX) as publisher:
        start = time.monotonic()
        for number, draft in enumerate(drafts):
            due = start + number / per_s
            pause.wait(max(0.0, due - time.monotonic()))
            sent[draft.id] = datetime.now(UTC)
            publisher.publish_many([draft])
    return sent
