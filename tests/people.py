"""What tests of a person's wishes look at: rows, read and set directly."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text

from shared.db.engine import open_database
from shared.db.people import insert_workspace
from shared.db.reads import RunSummary, find_run_rows
from shared.keys import Keys
from shared.model.automation import Definition, parse_definition
from shared.model.events import decode_entry
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from shared.services.backends import Backends, Caller
from shared.time.clock import ManualClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CALLER = Caller("w1", "USER cli:anna")
LATER = datetime(2026, 3, 1, 13, tzinfo=UTC)


@contextmanager
def opened_backends(database_url: str, redis_url: str) -> Iterator[Backends]:
    """Open the servers of a test, with the workspaces w1 and w2."""
    database = open_database(database_url)
    client = open_redis(redis_url)
    keys = Keys("", "factory:events")
    with database.begin() as conn:
        insert_workspace(conn, "w1", "One", now=NOW)
        insert_workspace(conn, "w2", "Two", now=NOW)
    yield Backends(database, client, keys, HandleQueue(client, keys), ManualClock(NOW))
    database.dispose()
    client.close()


def definition(key: str = "welcome", **given: object) -> Definition:
    """Make a valid definition; name only what a test is about."""
    return parse_definition(
        {
            "key": key,
            "name": f"Automation {key}",
            "trigger": {"type": "EVENT", "config": {"eventType": "order.placed"}},
            "actions": [{"type": "EMIT_EVENT", "config": {"event_type": "order.seen"}}],
            **given,
        }
    )


def run_row(backends: Backends, run_id: str, workspace_id: str = "w1") -> RunSummary:
    """Read one run."""
    with backends.database.read() as conn:
        return find_run_rows(conn, workspace_id, [run_id])[run_id]


def set_run(backends: Backends, run_id: str, status: str, **values: Any) -> None:
    """Put a run into a state as if a worker had."""
    given = {"status": status, "lease": 1, "lease_until": LATER.isoformat(), **values}
    columns = ", ".join(f"{name} = :{name}" for name in given)
    with backends.database.begin() as conn:
        conn.execute(text(f"UPDATE automation_runs SET {columns} WHERE id = :id"), {**given, "id": run_id})


def audit_actions(backends: Backends) -> list[str]:
    """Name the audited actions in order."""
    with backends.database.read() as conn:
        return list(conn.execute(text("SELECT action FROM audit ORDER BY id")).scalars())


def log_messages(backends: Backends, run_id: str) -> list[str]:
    """Give the lines of a run's log in order."""
    statement = text("SELECT message FROM automation_logs WHERE run_id = :id ORDER BY id")
    with backends.database.read() as conn:
        return list(conn.execute(statement, {"id": run_id}).scalars())


def told_ends(backends: Backends) -> list[tuple[str, str]]:
    """Give the run and the status of each `automation.executed` on the stream; each is marked as sent."""
    with backends.database.read() as conn:
        unsent = conn.execute(text("SELECT count(*) FROM outbox WHERE sent_at IS NULL")).scalar_one()
    assert unsent == 0
    entries = backends.redis.xrange(backends.keys.stream)
    events = [decode_entry(entry_id.decode(), fields) for entry_id, fields in entries]
    ends = [event.payload for event in events if event.type == "automation.executed"]
    return [(payload["runId"], payload["status"]) for payload in ends]
