"""A whole deployment under test: servers, processes, automations, events, and a receiver with its ledger."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text

from knockon.client import EventDraft, Publisher
from shared.db.engine import open_database
from shared.db.people import Member, insert_member, insert_workspace
from shared.ids import new_id
from shared.keys import Keys
from shared.model.automation import parse_definition
from shared.model.moves import ENDED
from shared.model.roles import Role
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from shared.services.automations import apply_changes
from shared.services.backends import Backends, Caller
from shared.services.definitions import Leftovers
from shared.time.clock import SystemClock
from tests.receiver import Receiver, Script
from tests.system.fleet import Fleet, open_fleet
from tests.waiting import poll

WORKSPACE = "w1"
CALLER = Caller(WORKSPACE, "USER cli:anna")
PLACED = "order.placed"
KEYS = Keys("", "factory:events")


@dataclass
class Deployment:
    """What a test acts on and looks at. `published` remembers each event that was sent."""

    fleet: Fleet
    backends: Backends
    publisher: Publisher
    receiver: Receiver
    published: list[EventDraft] = field(default_factory=list)
    listening: dict[str, str] = field(default_factory=dict)

    def automation(self, *actions: Mapping[str, Any], on: str = PLACED, **given: Any) -> str:
        """Apply an ACTIVE automation on an event type and give its id."""
        key = given.pop("key", f"a-{len(self.listening)}")
        trigger = {"type": "EVENT", "config": {"eventType": on}}
        definition = {"key": key, "name": key, "trigger": trigger, "actions": list(actions), **given}
        apply_changes(
            self.backends, CALLER, [parse_definition({"status": "ACTIVE", **definition})], Leftovers.KEEP
        )
        automation_id: str = self.one("SELECT id FROM automations WHERE key = :key", key=key).id
        self.listening[automation_id] = on
        return automation_id

    def hook(self, path: str, **given: Any) -> dict[str, Any]:
        """Make an action that calls a path of the receiver."""
        return {"type": "SEND_WEBHOOK", "config": {"url": self.receiver.url(path)}, **given}

    def publish(self, count: int = 1, event_type: str = PLACED) -> list[EventDraft]:
        """Publish events of one type."""
        drafts = [EventDraft(event_type, WORKSPACE, {"number": number}) for number in range(count)]
        self.published += drafts
        self.publisher.publish_many(drafts)
        return drafts

    def all(self, query: str, **values: Any) -> Sequence[Any]:
        with self.backends.database.read() as conn:
            return conn.execute(text(query), values).all()

    def one(self, query: str, **values: Any) -> Any:
        (row,) = self.all(query, **values)
        return row

    def runs(self) -> Sequence[Any]:
        return self.all("SELECT * FROM automation_runs ORDER BY id")

    def statuses(self) -> list[str]:
        return [row.status for row in self.runs()]

    def await_status(self, status: str, count: int, timeout_s: float = 20.0) -> None:
        """Wait until so many runs have a status."""
        poll(lambda: self.statuses().count(status) >= count, timeout_s, every_s=0.05)

    def await_ended(self, count: int, timeout_s: float = 30.0) -> None:
        """Wait until there are so many runs and all have ended."""

        def ended() -> bool:
            statuses = self.statuses()
            return len(statuses) >= count and all(status in ENDED for status in statuses)

        poll(ended, timeout_s, every_s=0.05)

    def await_delivery(self, path: str, count: int = 1) -> None:
        """Wait until the receiver was called so often on a path."""
        poll(lambda: len(self.receiver.deliveries(path)) >= count, 20.0)

    def attempts(self) -> list[tuple[str, int, str]]:
        """Give each attempt's run, lease and outcome."""
        rows = self.all("SELECT run_id, lease, outcome FROM run_attempts ORDER BY run_id, lease")
        return [(row.run_id, row.lease, row.outcome) for row in rows]

    def outcomes(self) -> list[str]:
        """Give the outcomes of all attempts, in order."""
        return [outcome for _, _, outcome in self.attempts()]


@contextmanager
def open_deployment(
    redis_url: str, database_url: str, folder: Path, script: Script | None = None, **settings: Any
) -> Iterator[Deployment]:
    """Open a deployment with one workspace and its owner; nothing runs yet."""
    database = open_database(database_url)
    client = open_redis(redis_url)
    now = datetime.now(UTC)
    with database.begin() as conn:
        insert_workspace(conn, WORKSPACE, "One", now=now)
        insert_member(conn, Member(new_id(), WORKSPACE, "owner@example.test", "Olga", Role.OWNER), now=now)
    backends = Backends(database, client, KEYS, HandleQueue(client, KEYS), SystemClock())
    with (
        Receiver(folder / "ledger.jsonl", script) as receiver,
        Publisher(redis_url) as publisher,
        open_fleet(redis_url, database_url, folder, **settings) as fleet,
    ):
        yield Deployment(fleet, backends, publisher, receiver)
    client.close()
    database.dispose()
