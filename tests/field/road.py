"""The whole road of an event in one process: stream, matcher, queue, engine, scheduler, receiver.

Everything is the product's own and works on real servers; only the loops around it are the test's, so that a
test knows when all is at rest. What time it is, the test says too: so no retry comes due by itself, and
nobody sits through a backoff.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from executors.outbound import Outbound
from pipeline.engine import Engine
from pipeline.parts import Parts
from shared.db.people import Member, insert_member, insert_workspace
from shared.ids import new_id
from shared.model.automation import parse_definition
from shared.model.moves import ENDED
from shared.model.roles import Role
from shared.model.runs import QueueKind
from shared.process import StopFlag
from shared.services.automations import apply_changes
from shared.services.backends import Backends, Caller
from shared.services.definitions import Leftovers
from shared.time.clock import SystemClock
from tests.field.sights import Sights
from tests.matching import Post, open_post
from tests.receiver import Receiver, Script
from tests.rooms import Execute, open_room
from tests.waiting import poll
from timers.delayed import DelayedSweep
from watchdog.parts import Parts as WatchdogParts
from worker.handles import HandleJob
from worker.presence import Link
from worker.reading import HandleReader
from worker.scheduler import RetryScheduler
from worker.settlers import with_settlers

W1 = Caller("w1", "USER cli:anna")
W2 = Caller("w2", "USER cli:bert")
ON_UPDATE: Mapping[str, Any] = {"type": "RECORD_UPDATED"}
NOTICE: Mapping[str, Any] = {"type": "CREATE_NOTIFICATION", "config": {"title": "Done"}}
REST_S = 30.0


class HeldClock(SystemClock):
    """A clock whose instants stand still until they are moved; stretches pass as they do."""

    def __init__(self, begins: datetime | None = None) -> None:
        """Stand at the present moment, or at one of the test's own."""
        self._now = begins or super().now()
        self._ahead_s = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead_s

    def advance(self, by: timedelta) -> None:
        """Put both readings forward."""
        self._now += by
        self._ahead_s += by.total_seconds()


@dataclass
class Road(Sights):
    """What a test acts on, and looks at."""

    post: Post
    engine: Engine
    receiver: Receiver
    clock: HeldClock
    reader: HandleReader
    scheduler: RetryScheduler
    published: int = 0
    keys: list[str] = field(default_factory=list)

    def automation(
        self, *actions: Mapping[str, Any], on: Mapping[str, Any] | str = ON_UPDATE, **given: Any
    ) -> str:
        """Apply an ACTIVE automation, on a trigger or on an event type, and give its id."""
        caller = given.pop("caller", W1)
        trigger = {"type": "EVENT", "config": {"eventType": on}} if isinstance(on, str) else on
        key = given.pop("key", f"a-{len(self.keys)}")
        self.keys.append(key)
        definition = {"key": key, "name": key, "trigger": trigger, "actions": list(actions), **given}
        apply_changes(self.post.backends, caller, [parse_definition(definition)], Leftovers.KEEP)
        query = "SELECT id FROM automations WHERE key = :key AND workspace_id = :workspace_id"
        return str(self.room.one(query, key=key, workspace_id=caller.workspace_id).id)

    def hook(self, path: str, config: Mapping[str, Any] | None = None, **given: Any) -> dict[str, Any]:
        """Make an action that calls a path of the receiver."""
        return {"type": "SEND_WEBHOOK", "config": {"url": self.receiver.url(path), **(config or {})}, **given}

    def publish(self, type_: str, payload: Mapping[str, Any] | None = None, **given: Any) -> str:
        """Put an event on the stream and give its entry id."""
        self.published += 1
        return self.post.publish(type_, payload, **given)

    def publish_raw(self, fields: Mapping[Any, Any]) -> str:
        """Put an entry on the stream as it is and give its id."""
        self.published += 1
        return self.post.publish_raw(fields)

    def update(self, properties: Mapping[str, Any], *changed: str, **payload: Any) -> str:
        """Publish that record r1 was updated."""
        told = {"recordId": "r1", "databaseId": "d1", "properties": dict(properties), **payload}
        return self.publish("record.updated", {**told, "changedProperties": list(changed)})

    def rest(self) -> None:
        """Go on until nothing waits but for a later time, and all that follows a commit is done."""
        while self.go():
            assert self.engine.wait_idle(REST_S)
            poll(self._is_told, REST_S)

    def go(self) -> int:
        """Match what is new and start what is due; give how much that was. Waits for none of it."""
        moved = self.post.step()
        if self.scheduler.acquire_lock():
            moved += self.scheduler.enqueue_jobs()
            self.scheduler.remove_lock()
        while (job := self._take()) is not None:
            assert job.handle is not None, job.fault
            self.engine.take(job.handle.run_ids)
            self.reader.acknowledge(job, ())
            moved += 1
        return moved

    def wait(self, seconds: float) -> None:
        """Let time pass, and do what comes due."""
        self.clock.advance(timedelta(seconds=seconds))
        self.rest()

    def sweep(self) -> None:
        """Fire what has waited long enough, and skip what has waited in vain; nothing runs yet."""
        expiry = timedelta(hours=self.room.parts.settings.delay_expiry_h)
        DelayedSweep(self.post.backends, expiry).pass_once()

    def watchdog(self) -> WatchdogParts:
        """Give the parts of a watchdog over all this."""
        parts = self.room.parts
        return WatchdogParts(
            settings=parts.settings,
            database=parts.database,
            redis=parts.redis,
            keys=parts.keys,
            queue=parts.queue,
            clock=parts.clock,
            owner="watchdog-1",
        )

    def _take(self) -> HandleJob | None:
        waits = any(self.room.parts.queue.depth(kind) for kind in QueueKind)
        return self.reader.take(0.005) if waits else None

    def _is_told(self) -> bool:
        """Tell whether emitted events are on the stream and retries with the scheduler."""
        parts = self.room.parts
        emitted = self.room.one("SELECT count(*) AS n FROM outbox").n
        retries = [row for row in self.runs() if row.status not in ENDED and row.next_attempt_at is not None]
        on_stream = parts.redis.xlen(parts.keys.stream) - self.published
        return on_stream >= emitted and parts.redis.zcard(parts.keys.scheduled) >= len(retries)


@contextmanager
def open_road(
    urls: tuple[str, str],
    ledger: Path,
    executors: Mapping[str, Execute] | None = None,
    script: Script | None = None,
    **settings: Any,
) -> Iterator[Road]:
    """Open a road on the servers of `urls`, Redis first; the workspaces w1 and w2 have an owner each.

    Webhooks may reach the receiver on loopback, or take the way out that `http` makes for its port. The clock
    stands at the present moment, or at the one given as `begins`.
    """
    clock = HeldClock(settings.pop("begins", None))
    make_http: Callable[[int], Outbound] | None = settings.pop("http", None)
    opened = open_room(*urls, executors, webhook_allow_private=True, **settings)
    with Receiver(ledger, script) as receiver:
        http = opened.parts.http if make_http is None else make_http(receiver.port)
        room = replace(opened, parts=with_settlers(replace(opened.parts, clock=clock, http=http)))
        parts = room.parts
        _people(parts)
        engine = Engine(parts)
        engine.start()
        link = Link(parts.redis, parts.keys, clock, f"test-{new_id()}")
        yield Road(
            room=room,
            post=open_post(Backends(parts.database, parts.redis, parts.keys, parts.queue, clock)),
            engine=engine,
            receiver=receiver,
            clock=clock,
            reader=HandleReader(parts.redis, parts.keys, clock),
            scheduler=RetryScheduler(link, StopFlag()),
        )
        engine.stop(grace_s=2)
    parts.http.close()
    parts.database.dispose()
    parts.redis.close()


def _people(parts: Parts) -> None:
    now = datetime.now(UTC)
    with parts.database.begin() as conn:
        for workspace_id in ("w1", "w2"):
            insert_workspace(conn, workspace_id, workspace_id, now=now)
            address = f"owner@{workspace_id}.test"
            insert_member(conn, Member(new_id(), workspace_id, address, "Olga", Role.OWNER), now=now)
