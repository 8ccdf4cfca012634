"""A morning of automations that never wait, and what is left of it: rows, log lines and events without ids.

It uses nothing that an earlier version of the product does not have, so that what that one left can be
written down and compared.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from shared.db.types import read_json
from tests.field.road import NOTICE, Road

SCRIPT = {"/flaky": [503, 200], "/gone": [410]}
TABLES: Mapping[str, str] = {
    "automation_runs": """automation_id, automation_version, source, source_id, event_key, trigger_type,
        subject_type, subject_id, status, skip_reason, error, input, event, output, depth, retry_count,
        failures, crash_count, lease, queue, stop_reason, next_attempt_at, created_at, started_at,
        ended_at""",
    "automation_logs": "workspace_id, automation_id, run_id, level, message, data, at",
    "run_actions": "run_id, position, type, lease, output, started_at, ended_at",
    "run_attempts": "run_id, lease, outcome, code, message, position, started_at, ended_at",
    "subjects": "workspace_id, type, id, data, deleted_at",
    "messages": """workspace_id, conversation_id, direction, sender_type, content, private, auto_submitted,
        run_id, created_at""",
    "outbox": "workspace_id, run_id, fields, sent_at",
    "notifications": "workspace_id, title, body, resource_type, resource_id, read_at",
}
JSONS = frozenset({"error", "input", "event", "output", "data", "fields"})
NAMES = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\d{13}-\d+"), "ENTRY"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?"), "THEN"),
    (re.compile(r"127\.0\.0\.1:\d+"), "RECEIVER"),
    (re.compile(r'("\w+_(?:ms|s)":) ?[\d.]+'), r"\1 0"),
)


def status_is(value: str) -> dict[str, str]:
    return {"field": "conversation.status", "op": "eq", "value": value}


def apply_all(road: Road) -> None:
    """Apply automations of many kinds; the key of each says what it is for."""
    label = {"type": "ADD_LABEL", "config": {"labels": ["seen"]}}
    say = {"type": "SEND_MESSAGE", "config": {"content": "We got it, {{ message.content }}"}}
    total = {"type": "UPDATE_RECORD", "config": {"properties": {"total": "{{ properties.qty }}"}}}
    emit = {"type": "EMIT_EVENT", "config": {"event_type": "order.seen"}}
    incoming = {"field": "message.direction", "op": "eq", "value": "incoming"}
    watched = {"type": "PROPERTY_CHANGED", "config": {"properties": ["done"]}}
    road.automation(total, key="own-record")
    road.automation(NOTICE, on=watched, key="watched")
    road.automation(label, on={"type": "CONVERSATION_UPDATED"}, conditions=status_is("pending"), key="label")
    road.automation(NOTICE, on={"type": "CONVERSATION_CREATED"}, conditions=status_is("open"), key="created")
    road.automation(say, on={"type": "MESSAGE_CREATED"}, conditions=incoming, key="answer")
    road.automation(road.hook("/flaky"), emit, on="order.placed", key="flaky")
    road.automation(road.hook("/gone"), NOTICE, on="order.placed", key="gone")
    road.automation(NOTICE, on="order.*", key="any-order")
    road.automation(NOTICE, on="order.placed", status="PAUSED", key="paused")


def live_through(road: Road) -> None:
    """Tell of things, one after the other, and let each be done with before the next."""
    talk, order = {"id": "c1"}, {"type": "order", "id": "o1"}
    mail = {"id": "m1", "direction": "incoming", "senderType": "contact", "content": "Hello?"}
    told: Sequence[tuple[str, Mapping[str, Any]]] = (
        ("conversation.created", {"conversation": {**talk, "status": "open", "labels": []}}),
        ("conversation.updated", {"conversation": {**talk, "status": "pending"}}),
        ("conversation.updated", {"conversation": {**talk, "status": "pending", "note": 1}}),
        ("message.created", {"conversation": talk, "message": mail}),
        ("message.created", {"conversation": talk, "message": {**mail, "id": "m2", "direction": "outgoing"}}),
        ("message.created", {"conversation": talk, "message": {**mail, "id": "m3", "autoSubmitted": "yes"}}),
        ("conversation.resolved", {"conversation": {**talk, "status": "resolved"}}),
        ("order.placed", {"subject": {**order, "state": {"paid": False}}, "number": 7}),
        ("order.paid", {"subject": {**order, "state": {"paid": True}}}),
        ("conversation.deleted", {"conversation": talk}),
    )
    for type_, payload in told:
        road.publish(type_, payload)
        road.rest()
    road.update({"qty": 4, "done": False}, "qty", "done")
    road.rest()
    road.update({"qty": 5}, "qty")
    road.rest()
    road.publish_raw({"type": "order.placed", "payload": "no json"})
    road.rest()
    road.wait(2)


def left(road: Road, keys: Sequence[str]) -> dict[str, list[Any]]:
    """Give what the automations of these keys left, ids and instants taken away, in an order of its own."""
    automations = {row.id: row.key for row in road.room.all("SELECT id, key FROM automations")}
    named = {id_: f"automation {key}" for id_, key in automations.items()}
    others = {named[id_] for id_, key in automations.items() if key not in keys}
    nth: Counter[str] = Counter()
    for run in road.room.all("SELECT id, automation_id FROM automation_runs ORDER BY id"):
        key = automations[run.automation_id]
        nth[key] += 1
        named[run.id] = f"run {nth[key]} of {key}"
    found: dict[str, list[Any]] = {}
    for table in TABLES:
        texts = sorted(_text(row, named) for row in _rows(road, table))
        found[table] = [
            orjson.loads(each) for each in texts if not any(f'"{name}"' in each for name in others)
        ]
    return found


def _rows(road: Road, table: str) -> list[dict[str, Any]]:
    """Read a table; of a log line it is told, too, the how manieth of its run it is."""
    order = " ORDER BY id" if table == "automation_logs" else ""
    read = road.room.all(f"SELECT {TABLES[table]} FROM {table}{order}")
    rows = [dict(row._mapping) for row in read]
    nth: Counter[str] = Counter()
    for row in rows if order else ():
        nth[row["run_id"]] += 1
        row["nth"] = nth[row["run_id"]]
    return rows


def _text(row: Mapping[str, Any], named: Mapping[str, str]) -> str:
    told = {name: read_json(value) if name in JSONS else value for name, value in row.items()}
    if "fields" in told:  # of an entry that is to be sent: JSON inside JSON, its keys in the database's order
        inner = {name: orjson.loads(told["fields"][name]) for name in ("payload", "context")}
        told = {**told, "fields": {**told["fields"], **inner}}
    text = orjson.dumps(told, option=orjson.OPT_SORT_KEYS, default=str).decode()
    for id_, name in named.items():
        text = text.replace(id_, name)
    for pattern, name in NAMES:
        text = pattern.sub(name, text)
    return text
