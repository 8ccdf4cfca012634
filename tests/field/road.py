"""The whole road of an event in one process: stream, matcher, queue, engine, scheduler, receiver.

Everything is the product's own and works on real servers; only the loops around it are the test's, so that a
test knows when all is at rest. The clock runs as the machine's does and can be put forward besides, so that
nobody sits through a backoff.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import text

from pipeline.engine import Engine
from pipeline.parts import Parts
from shared.db.people import Member, insert_member, insert_workspace
from shared.db.tables import METADATA
from shared.ids import new_id
from shared.model.automation import parse_definition
from shared.model.events import Event, decode_entry
from shared.model.moves import ENDED
from shared.model.roles import Role
from shared.model.runs import QueueKind
from shared.process import StopFlag
from shared.services.automations import apply_changes
from shared.services.backends import Backends, Caller
from shared.services.definitions import Leftovers
from shared.time.clock import SystemClock
from tests.matching import Post, open_post
from tests.receiver import Receiver, Script
from tests.rooms import Execute, Room, open_room, tree
from tests.waiting import poll
from watchdog.parts import Parts as WatchdogParts
from worker.handles import HandleJob
from worker.presence import Link
from worker.reading import HandleReader
from worker.scheduler import RetryScheduler

W1 = Caller("w1", "USER cli:anna")
W2 = Caller("w2", "USER cli:bert")
ON_UPDATE: Mapping[str, Any] = {"type": "RECORD_UPDATED"}
NOTICE: Mapping[str, Any] = {"type": "CREATE_NOTIFICATION", "config": {"title": "Done"}}
REST_S = 30.0


class SkippingClock(SystemClock):
    """The machine's clock, that can be put forward besides."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self._ahead

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead.total_seconds()

    def advance(self, by: timedelta) -> None:
        """Put both readings forward."""
        self._ahead += by


@dataclass
class Road:
    """What a test acts on and looks at."""

    room: Room
    post: Post
    engine: Engine
    receiver: Receiver
    clock: SkippingClock
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

    def runs(self, automation_id: str | None = None) -> Sequence[Any]:
        """Give every run, or those of one automation, oldest first."""
        rows = self.room.all("SELECT * FROM automation_runs ORDER BY id")
        return [row for row in rows if automation_id in (None, row.automation_id)]

    def run(self, automation_id: str | None = None) -> Any:
        """Give the only run."""
        (row,) = self.runs(automation_id)
        return row

    def ends(self, automation_id: str | None = None) -> list[str]:
        """Say of each run how it ended: why it was skipped, or its status."""
        return [row.skip_reason or row.status for row in self.runs(automation_id)]

    def code(self, run: Any) -> str:
        """Give the code of a run's error."""
        return str(tree(run.error)["code"])

    def data(self, record_id: str, workspace_id: str = "w1") -> Any:
        """Give what is known of a record."""
        query = "SELECT data FROM subjects WHERE id = :id AND workspace_id = :workspace_id"
        return tree(self.room.one(query, id=record_id, workspace_id=workspace_id).data)

    def told(self, type_: str) -> list[Event]:
        """Give the events of a type that are on the stream, published by whomever."""
        entries = self.room.parts.redis.xrange(self.room.parts.keys.stream)
        found = [decode_entry(entry_id.decode(), fields) for entry_id, fields in entries if is_whole(fields)]
        return [event for event in found if event.type == type_]

    def why(self, run_id: str) -> list[str]:
        """Give the reasons in the log why a run's conditions did not hold."""
        query = "SELECT data FROM automation_logs WHERE run_id = :id AND message = 'run skipped: conditions'"
        return [leaf["reason"] for leaf in tree(self.room.one(query, id=run_id).data)["failed"]]

    def notices(self) -> list[str]:
        """Give the titles of all notices, oldest first."""
        return [row.title for row in self.room.all("SELECT title FROM notifications ORDER BY id")]

    def sizes(self) -> dict[str, int]:
        """Count the rows of every table, and the entries of the stream."""
        with self.room.database.read() as conn:
            counted = {
                name: conn.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
                for name in METADATA.tables
                if name != "locks"
            }
        return {**counted, "stream": self.room.parts.redis.xlen(self.room.parts.keys.stream)}

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


def is_whole(fields: Mapping[bytes, bytes]) -> bool:
    """Tell whether an entry could be an event at all."""
    return {b"type", b"workspaceId", b"payload"} <= fields.keys()


@contextmanager
def open_road(
    urls: tuple[str, str],
    ledger: Path,
    executors: Mapping[str, Execute] | None = None,
    script: Script | None = None,
    **settings: Any,
) -> Iterator[Road]:
    """Open a road on the servers of `urls`, Redis first; the workspaces w1 and w2 have an owner each."""
    clock = SkippingClock()
    opened = open_room(*urls, executors, webhook_allow_private=True, **settings)
    room = replace(opened, parts=replace(opened.parts, clock=clock))
    parts = room.parts
    _people(parts)
    engine = Engine(parts)
    engine.start()
    link = Link(parts.redis, parts.keys, clock, f"test-{new_id()}")
    with Receiver(ledger, script) as receiver:
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
