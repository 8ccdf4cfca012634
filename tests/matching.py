"""Factories for tests of the matcher: events, automations, a matcher on real servers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rq.job import Job
from sqlalchemy import text

from matcher.intake import Intake
from matcher.stream import Stream
from shared.db.automations import AutomationRow, insert_automation, update_automation
from shared.ids import new_id
from shared.model.automation import Automation, parse_definition
from shared.model.events import Event, EventDraft, encode_fields
from shared.model.runs import QueueKind
from shared.model.statuses import AutomationStatus
from shared.queue import decode_handle
from shared.services.backends import Backends

BORN = datetime(2026, 3, 1, 12, tzinfo=UTC)
ON_ORDERS = {"type": "EVENT", "config": {"eventType": "order.placed"}}
ACTIONS = [{"type": "EMIT_EVENT", "config": {"event_type": "order.seen"}}]


def make_event(type_: str = "order.placed", payload: Mapping[str, Any] | None = None, **given: Any) -> Event:
    """Make an event as it comes off the stream."""
    values: dict[str, Any] = {
        "entry_id": "1000-0",
        "workspace_id": "w1",
        "id": None,
        "occurred_at": BORN,
        "context": None,
        "source": None,
        "sanitized": False,
    }
    return Event(type=type_, payload=payload or {}, **{**values, **given})


def make_automation(trigger: Mapping[str, Any] = ON_ORDERS, **given: Any) -> Automation:
    """Make an ACTIVE automation; `given` names fields of the automation, or keys of its definition."""
    own = {"id", "workspace_id", "version", "activated_ms", "created_at"}
    keys = {name: value for name, value in given.items() if name not in own}
    raw = {"key": "a", "name": "An automation", "trigger": trigger, "actions": ACTIONS, **keys}
    values: dict[str, Any] = {
        "id": new_id(),
        "workspace_id": "w1",
        "version": 1,
        "activated_ms": 0,
        "created_at": BORN,
        **{name: value for name, value in given.items() if name in own},
    }
    return Automation(definition=parse_definition(raw), **values)


@dataclass(frozen=True)
class Post:
    """One matcher on real servers, driven step by step."""

    backends: Backends
    stream: Stream
    intake: Intake

    def publish(self, type_: str = "order.placed", payload: Any = None, **given: Any) -> str:
        """Put an event on the stream and give its entry id."""
        draft = EventDraft(type_, given.pop("workspace_id", "w1"), payload or {}, **given)
        return self.publish_raw(encode_fields(draft))

    def publish_raw(self, fields: Mapping[Any, Any]) -> str:
        return self.backends.redis.xadd(self.backends.keys.stream, fields).decode()

    def step(self) -> int:
        """Read what is new and take it in; give how many entries it was."""
        reading = self.stream.read(200, block_ms=1)
        self.intake.take(reading)
        return len(reading.deliveries)

    def add(self, trigger: Mapping[str, Any] = ON_ORDERS, **given: Any) -> AutomationRow:
        """Store an automation and raise the index's version."""
        row = make_row(trigger, **given)
        with self.backends.database.begin() as conn:
            insert_automation(conn, row)
        self.backends.redis.incr(self.backends.keys.index_version)
        return row

    def change(self, row: AutomationRow) -> None:
        """Write an automation over its row and raise the index's version."""
        with self.backends.database.begin() as conn:
            update_automation(conn, row)
        self.backends.redis.incr(self.backends.keys.index_version)

    def rows(self, query: str, **values: Any) -> list[Any]:
        with self.backends.database.read() as conn:
            return list(conn.execute(text(query), values).all())

    def runs(self) -> list[Any]:
        """Give every run, oldest first."""
        return self.rows("SELECT * FROM automation_runs ORDER BY id")

    def handled(self, kind: QueueKind = QueueKind.MAIN) -> list[str]:
        """Give the run ids that stand in a queue's handles, in order."""
        client: Any = self.backends.redis
        found: list[str] = []
        for handle_id in client.lrange(f"rq:queue:{self.backends.keys.queue(kind)}", 0, -1):
            handle = decode_handle(handle_id.decode(), client.hgetall(Job.key_for(handle_id.decode())))
            found += handle.run_ids
        return found

    def pending(self) -> int:
        """Count the entries that were read and not acknowledged."""
        (group,) = self.backends.redis.xinfo_groups(self.backends.keys.stream)
        return group["pending"]

    def count(self, key: str) -> int:
        return int(self.backends.redis.get(key) or 0)

    def skipped(self, reason: str) -> int:
        return self.count(self.backends.keys.skipped(reason))

    def health(self, name: str) -> int:
        return self.count(self.backends.keys.count(name))


def make_row(trigger: Mapping[str, Any] = ON_ORDERS, **given: Any) -> AutomationRow:
    """Make an automation's row; `given` names its fields, or keys of its definition."""
    own = set(AutomationRow.__dataclass_fields__) - {"definition"}
    keys = {name: value for name, value in given.items() if name not in own}
    row_id = new_id()
    raw = {
        "key": f"a-{row_id[-12:]}",
        "name": "An automation",
        "trigger": trigger,
        "actions": ACTIONS,
        **keys,
    }
    values: dict[str, Any] = {
        "id": row_id,
        "workspace_id": "w1",
        "key": raw["key"],
        "name": raw["name"],
        "status": AutomationStatus.ACTIVE,
        "version": 1,
        "definition": raw,
        "activated_ms": 0,
        "created_at": datetime.now(UTC),
        "updated_at": datetime.now(UTC),
        "deleted_at": None,
    }
    return AutomationRow(**{**values, **{name: value for name, value in given.items() if name in own}})


def open_post(
    backends: Backends, consumer: str = "c1", retention: timedelta = timedelta(days=36_500)
) -> Post:
    """Make a matcher that has joined the group."""
    stream = Stream(backends.redis, backends.keys, consumer)
    stream.join()
    return Post(backends, stream, Intake(backends, retention))
