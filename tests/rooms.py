"""Factories for tests of the engine: an automation, its runs, the parts of one process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from executors.contract import ActionResult, RunContext
from pipeline.engine import Engine
from pipeline.parts import Parts, open_parts
from shared.db.automations import AutomationRow, insert_automation
from shared.db.claims import Lessee, claim_runs
from shared.db.engine import Database
from shared.db.people import Member, insert_member
from shared.db.runs_new import insert_runs
from shared.db.sql import sql
from shared.db.types import read_json
from shared.ids import new_id
from shared.model.actions import ActionConfig
from shared.model.automation import parse_definition
from shared.model.events import Context, Event, event_to_json
from shared.model.roles import Role
from shared.model.runs import ClaimedRun, NewRun, QueueKind, RunSource
from shared.model.statuses import AutomationStatus
from shared.settings import Settings

WORKSPACE = "w1"
NOTIFY = {"type": "CREATE_NOTIFICATION", "config": {"title": "Hello {{ name }}", "body": "b"}}
HOOK = {"type": "SEND_WEBHOOK", "config": {"url": "http://127.0.0.1:9/hook"}}

Execute = Callable[[ActionConfig, RunContext], ActionResult]
OpenRoom = Callable[..., "Room"]


@dataclass(frozen=True)
class Room:
    """One process's parts and the rows around them."""

    parts: Parts

    @property
    def database(self) -> Database:
        return self.parts.database

    def automation(self, *actions: Mapping[str, Any], **keys: Any) -> AutomationRow:
        """Store an ACTIVE automation with these actions."""
        now = datetime.now(UTC)
        definition = {
            "key": keys.pop("key", f"a-{new_id()[-12:]}"),
            "name": keys.pop("name", "An automation"),
            "trigger": keys.pop("trigger", {"type": "EVENT", "config": {"eventType": "order.placed"}}),
            "actions": list(actions) or [NOTIFY],
            **keys,
        }
        parse_definition(definition)
        row = AutomationRow(
            id=new_id(),
            workspace_id=WORKSPACE,
            key=definition["key"],
            name=definition["name"],
            status=AutomationStatus(definition.get("status", "ACTIVE")),
            version=1,
            definition=definition,
            activated_ms=0,
            created_at=now,
            updated_at=now,
            deleted_at=None,
        )
        with self.database.begin() as conn:
            insert_automation(conn, row)
        return row

    def run(self, automation: AutomationRow, payload: Mapping[str, Any] | None = None, **keys: Any) -> str:
        """Store a PENDING run of an automation and give its id."""
        return self.runs(automation, [payload or {}], **keys)[0]

    def runs(
        self, automation: AutomationRow, payloads: Sequence[Mapping[str, Any]], **keys: Any
    ) -> list[str]:
        """Store PENDING runs of an automation and give their ids."""
        rows = [new_run(automation, payload, **keys) for payload in payloads]
        with self.database.begin() as conn:
            insert_runs(conn, rows)
        return [row.id for row in rows]

    def owner(self) -> str:
        """Store an owner of the workspace and give the id."""
        member = Member(new_id(), WORKSPACE, "owner@example.test", "Olga", Role.OWNER)
        with self.database.begin() as conn:
            insert_member(conn, member, now=datetime.now(UTC))
        return member.id

    def row(self, run_id: str) -> Any:
        """Read a run's row; JSON columns come as text or trees, see `tree`."""
        return self.one("SELECT * FROM automation_runs WHERE id = :id", id=run_id)

    def status(self, run_id: str) -> str:
        return self.row(run_id).status

    def set(self, run_id: str, **columns: Any) -> None:
        """Put a run into a state as if a process had."""
        named = ", ".join(f"{name} = :{name}" for name in columns)
        self.change(f"UPDATE automation_runs SET {named} WHERE id = :id", id=run_id, **columns)

    def one(self, text: str, **params: Any) -> Any:
        return self.all(text, **params)[0]

    def all(self, text: str, **params: Any) -> Sequence[Any]:
        with self.database.read() as conn:
            return sql(text).run(conn, params).all()

    def change(self, text: str, **params: Any) -> None:
        with self.database.begin() as conn:
            sql(text).run(conn, params)

    def messages(self, run_id: str) -> list[str]:
        rows = self.all("SELECT message FROM automation_logs WHERE run_id = :id ORDER BY id", id=run_id)
        return [row.message for row in rows]


def new_run(automation: AutomationRow, payload: Mapping[str, Any], **keys: Any) -> NewRun:
    """Make a run of an event with this payload."""
    now = datetime.now(UTC)
    run_id = new_id()
    context: Context | None = keys.get("context")
    ms = int(now.timestamp() * 1000)
    event = Event(
        entry_id=keys.get("entry_id", f"{ms}-0"),
        type=keys.get("type", "order.placed"),
        workspace_id=WORKSPACE,
        payload=payload,
        id=run_id,
        occurred_at=now,
        context=context,
        source=None,
        sanitized=False,
    )
    return NewRun(
        id=run_id,
        workspace_id=WORKSPACE,
        automation_id=automation.id,
        automation_version=automation.version,
        source=RunSource.EVENT,
        source_id=f"{automation.id}:{event.key}",
        event_key=event.key,
        event_hash=event.hash,
        entry_id=event.entry_id,
        trigger_type="EVENT",
        subject_type=None,
        subject_id=None,
        depth=event.depth,
        root_run_id=context.root_run_id if context else run_id,
        input=event_to_json(event),
        event=None,
        queue=QueueKind.MAIN,
        created_at=keys.get("at", now - timedelta(seconds=1)),
    )


def open_room(
    redis_url: str, database_url: str, executors: Mapping[str, Execute] | None = None, **settings: Any
) -> Room:
    """Open the parts of one process, with other executors where a test brings them."""
    built = Settings.model_validate({"redis_url": redis_url, "database_url": database_url, **settings})
    parts = open_parts(built)
    if executors:
        parts = replace(parts, executors={**parts.executors, **executors})
    return Room(parts)


def start(room: Room, engines: list[Engine]) -> Engine:
    """Start an engine on a room's parts, and enter it among those that are to be stopped."""
    engine = Engine(room.parts)
    engine.start()
    engines.append(engine)
    return engine


def claim(room: Room, *run_ids: str, owner: str = "w", lease_s: float = 60) -> list[ClaimedRun]:
    """Claim runs as a worker would."""
    lessee = Lessee(owner, datetime.now(UTC), timedelta(seconds=lease_s))
    return room.database.transact(lambda conn: claim_runs(conn, run_ids, lessee))


def tree(value: object) -> Any:
    """Read a JSON column of a plain row."""
    return read_json(value)
