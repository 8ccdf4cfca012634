"""What tests of the worker share: an engine that only notes what it was given, and a worker in a thread."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from redis import Redis

from shared.errors import Unavailable
from shared.ids import new_id
from shared.keys import Keys
from shared.model.runs import QueueKind
from shared.process import StopFlag
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from shared.time.clock import SystemClock
from tests.waiting import poll
from worker.presence import Link
from worker.run_worker import RunWorker

KEYS = Keys("t:", "factory:events")
LISTS = {kind: f"rq:queue:{KEYS.queue(kind)}" for kind in QueueKind}
AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


@dataclass
class Recorder:
    """An engine with `room` for a claim, that notes the claims; the first `outages` find SQL away."""

    room: int = 50
    outages: int = 0
    error: Exception | None = None
    reason: str | None = None
    claims: list[list[str]] = field(default_factory=list)

    @property
    def taken(self) -> list[str]:
        return [run_id for claim in self.claims for run_id in claim]

    def window(self) -> int:
        return self.room

    def wait_for_room(self, timeout_s: float) -> None:
        if self.room == 0:
            threading.Event().wait(0.01)

    def take(self, run_ids: Sequence[str]) -> None:
        if self.outages > 0:
            self.outages -= 1
            raise Unavailable("SQL is away")
        if self.error is not None:
            raise self.error
        self.claims.append(list(run_ids))

    def failure(self) -> str | None:
        return self.reason


def make_link(redis_url: str, name: str | None = None) -> Link:
    return Link(open_redis(redis_url), KEYS, SystemClock(), name or f"test-{new_id()}")


@dataclass
class Running:
    """A worker at work, its flag, and its thread."""

    worker: RunWorker
    stop: StopFlag
    thread: threading.Thread

    def ended(self) -> bool:
        self.thread.join(10)
        return not self.thread.is_alive()


@contextmanager
def working(redis_url: str, engine: Recorder) -> Iterator[Running]:
    """Run a worker until the block ends."""
    stop = StopFlag()
    link = make_link(redis_url)
    worker = RunWorker(link, engine, stop)
    thread = threading.Thread(target=worker.work, daemon=True)
    thread.start()
    try:
        yield Running(worker, stop, thread)
    finally:
        stop.raise_()
        thread.join(10)
        link.redis.close()
        assert not thread.is_alive()


def push(redis_url: str, run_ids: Sequence[str], kind: QueueKind = QueueKind.MAIN) -> None:
    """Push runs as everybody does."""
    client = open_redis(redis_url)
    HandleQueue(client, KEYS).push(kind, run_ids, AT)
    client.close()


def leftovers(client: Any) -> list[bytes]:
    """Name what a queue that was worked off should not leave."""
    found = []
    for name in LISTS.values():
        found += client.lrange(name, 0, -1) + client.lrange(f"{name}:intermediate", 0, -1)
    return found + list(client.scan_iter("rq:job:*"))


def poll_clean(client: Redis) -> None:
    poll(lambda: not leftovers(client))
