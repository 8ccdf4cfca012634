"""What waits, written as sets: orders that are unpaid, of which an automation in each workspace tells later.

Those that are not due are never read, so nothing is known of their orders; those that are to fire are whole.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

import psycopg
from sqlalchemy import text

from benchmarks.scenario import CHUNK
from benchmarks.sites import Site
from shared.db.automations import INSERT
from shared.db.engine import Database, sqlite_file
from shared.db.sql import sql
from shared.db.types import write_instant
from shared.ids import new_id
from shared.model.automation import parse_definition
from shared.model.stamps import format_stamp

PLACED: Final = "order.placed"
DEFINITION: Final = {
    "key": "unpaid",
    "name": "Tell of orders that nobody pays",
    "status": "ACTIVE",
    "trigger": {"type": "EVENT", "config": {"eventType": PLACED}},
    "conditions": {"field": "order.paid", "op": "eq", "value": False},
    "execution_delay": 60,
    "actions": [{"type": "CREATE_NOTIFICATION", "config": {"title": "{{ subject.id }}", "body": "Unpaid"}}],
}
BEGAN: Final = timedelta(hours=1)

_COLUMNS: Final = """
    (id, workspace_id, automation_id, subject_type, subject_id, anchor, anchor_ms, anchor_seq, trigger_event,
    episode_key, started_at, due_at, status, version, armed_at, created_at, updated_at)
"""
_FILL: Final = f"""
    INSERT INTO pending_executions {_COLUMNS}
    SELECT m.id, 'ws_' || m.place, 'wait-' || m.place, 'order', m.id, 'state', 1, 0, '{{{{}}}}', 'state:1-0',
        :at, :at, 'pending', 1, :at, :at, :at
    FROM (SELECT CAST(s.n % :workspaces AS text) AS place, {{id}} AS id FROM ({{numbers}}) s) m
"""
_DIALECTS: Final = MappingProxyType(
    {
        "postgresql": (
            "'019c0000-0000-7000-8000-' || lpad(to_hex(s.n), 12, '0')",
            "SELECT generate_series(0, :count - 1) AS n",
        ),
        "sqlite": (
            "'019c0000-0000-7000-8000-' || printf('%012x', s.n)",
            "WITH RECURSIVE up(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up LIMIT :count) SELECT n FROM up",
        ),
    }
)
_DUE: Final = sql(
    f"""
    INSERT INTO pending_executions {_COLUMNS}
    SELECT id, workspace_id, automation_id, 'order', subject_id, 'state', anchor_ms, 0, trigger_event,
        episode_key, started_at, due_at, 'pending', 1, started_at, started_at, started_at FROM {{rows}}
    """,
    id="text",
    workspace_id="text",
    automation_id="text",
    subject_id="text",
    anchor_ms="bigint",
    trigger_event="jsonb",
    episode_key="text",
    started_at="timestamptz",
    due_at="timestamptz",
)
_ORDERS: Final = sql(
    """
    INSERT INTO subjects (workspace_id, type, id, data, writes, created_at, updated_at)
    SELECT workspace_id, 'order', subject_id, data, writes, started_at, started_at FROM {rows}
    """,
    workspace_id="text",
    subject_id="text",
    data="jsonb",
    writes="jsonb",
    started_at="timestamptz",
)


def store_rules(database: Database, workspaces: int) -> None:
    """Write the automation of each workspace, as old as if it had been there for a day."""
    parse_definition(DEFINITION)
    own = {"key": "unpaid", "name": "Unpaid", "status": "ACTIVE", "version": 1, "definition": DEFINITION}
    rows = [
        {**own, "id": f"wait-{number}", "workspace_id": f"ws_{number}", "activated_ms": 0}
        for number in range(workspaces)
    ]
    with database.begin() as conn:
        INSERT.run_set(conn, rows, now=write_instant(datetime.now(UTC) - timedelta(days=1)))


def store_waiting(site: Site, database: Database, count: int, workspaces: int) -> None:
    """Let so many wait that are due tomorrow, and put the database into the shape of one that has rested."""
    row_id, numbers = _DIALECTS[database.dialect]
    statement = text(_FILL.replace("{id}", row_id).replace("{numbers}", numbers).replace("{{}}", "{}"))
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    with database.begin() as conn:
        conn.execute(statement, {"count": count, "workspaces": workspaces, "at": tomorrow})
    file = sqlite_file(site.database_url)
    if file is None:
        with psycopg.connect(site.database_url, autocommit=True) as settled:
            settled.execute("VACUUM ANALYZE pending_executions")
            settled.execute("CHECKPOINT")
        return
    with database.begin() as conn:
        conn.execute(text("ANALYZE pending_executions"))
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def store_due(database: Database, due: Iterable[tuple[str, datetime]]) -> None:
    """Let unpaid orders wait that are due then, each in the workspace `ws_N` of its own."""
    rows = _whole(due)
    while chunk := list(islice(rows, CHUNK)):
        with database.begin() as conn:
            _ORDERS.run_set(conn, chunk)
            _DUE.run_set(conn, chunk)


def spread(
    workspaces: Sequence[str], each: int, first: datetime, over: timedelta
) -> list[tuple[str, datetime]]:
    """Give due times for so many orders of each workspace, evenly over a stretch, the workspaces in turn."""
    places = [workspace for _ in range(each) for workspace in workspaces]
    return [(place, first + over * number / len(places)) for number, place in enumerate(places)]


def _whole(due: Iterable[tuple[str, datetime]]) -> Iterator[dict[str, Any]]:
    for workspace, due_at in due:
        began = due_at - BEGAN
        stamp = (int(began.timestamp() * 1_000), 0)
        id_ = new_id()
        state = {"paid": False, "total": 9}
        yield {
            "id": id_,
            "workspace_id": workspace,
            "automation_id": workspace.replace("ws_", "wait-"),
            "subject_id": id_,
            "anchor_ms": stamp[0],
            "trigger_event": _event(workspace, id_, format_stamp(stamp), began.isoformat()),
            "episode_key": f"state:{format_stamp(stamp)}",
            "started_at": began.isoformat(),
            "due_at": due_at.isoformat(),
            "data": state,
            "writes": {
                "workspaceId": workspace,
                "type": "order",
                "id": id_,
                "fields": {name: [[*stamp, value]] for name, value in state.items()},
                "touches": [[*stamp, f"entry:{format_stamp(stamp)}", False]],
            },
        }


def _event(workspace: str, order_id: str, entry_id: str, at: str) -> dict[str, Any]:
    subject = {"type": "order", "id": order_id, "state": {"paid": False, "total": 9}}
    return {
        "entryId": entry_id,
        "type": PLACED,
        "workspaceId": workspace,
        "payload": {"subject": subject},
        "id": None,
        "occurredAt": at,
        "context": None,
        "source": None,
        "sanitized": False,
    }
