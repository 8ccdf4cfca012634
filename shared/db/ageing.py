"""What is forgotten by its age alone, table by table. Each statement deletes the oldest rows, a few at once.

Where rows are made with an id of ours, the id bounds the search: what is younger is not looked at.
"""

from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from sqlalchemy import Connection

from shared.db.retention import CLOCKS_APART
from shared.db.sql import Sql, sql
from shared.db.types import write_instant
from shared.ids import first_id


class Ageing(StrEnum):
    """What is forgotten; the name stands in the log line that counts it."""

    LOGS_ALONE = "logs_alone"
    AUDIT = "audit"
    NOTIFICATIONS = "notifications"
    MESSAGES = "messages"
    ALERTS = "alerts"
    ALERT_SENDS = "alert_sends"
    ALERT_GROUPS = "alert_groups"
    BULK_OPERATIONS = "bulk_operations"
    PENDING_EXECUTIONS = "pending_executions"
    IDLE_STEPS = "idle_steps"
    VERSIONS = "versions"
    IDEMPOTENCY_KEYS = "idempotency_keys"


# Lines of no run are of a schedule or an automation; they stand together in the index, in their order.
LOGS_ALONE: Final = sql(
    """
    DELETE FROM automation_logs WHERE id IN (
        SELECT k.id FROM (
            SELECT l.id, l.at FROM automation_logs l WHERE l.run_id IS NULL ORDER BY l.id LIMIT :most) k
        WHERE k.at < :before)
    """
)
AUDIT: Final = sql(
    """
    DELETE FROM audit WHERE id IN (
        SELECT r.id FROM audit r WHERE r.id < :bound AND r.at < :before ORDER BY r.id LIMIT :most)
    """
)
NOTIFICATIONS: Final = sql(
    """
    DELETE FROM notifications WHERE id IN (
        SELECT r.id FROM notifications r WHERE r.id < :bound AND r.created_at < :before
        ORDER BY r.id LIMIT :most)
    """
)
MESSAGES: Final = sql(
    """
    DELETE FROM messages WHERE (workspace_id, id) IN (
        SELECT r.workspace_id, r.id FROM messages r WHERE r.created_at < :before
        ORDER BY r.created_at LIMIT :most)
    """
)
ALERTS: Final = sql(
    """
    DELETE FROM alerts WHERE id IN (
        SELECT r.id FROM alerts r WHERE r.id < :bound AND r.created_at < :before ORDER BY r.id LIMIT :most)
    """
)
ALERT_SENDS: Final = sql(
    """
    DELETE FROM alert_sends WHERE id IN (
        SELECT r.id FROM alert_sends r WHERE r.id < :bound AND r.ended_at < :before ORDER BY r.id LIMIT :most)
    """
)
ALERT_GROUPS: Final = sql(
    """
    DELETE FROM alert_groups WHERE id IN (
        SELECT r.id FROM alert_groups r WHERE r.last_at < :before AND r.due_at IS NULL
        ORDER BY r.last_at LIMIT :most)
    """
)
BULK_OPERATIONS: Final = sql(
    """
    DELETE FROM bulk_operations WHERE id IN (
        SELECT r.id FROM bulk_operations r
        WHERE r.id < :bound AND r.moved_at < :before AND r.status NOT IN ('CONFIRMED', 'RUNNING')
        ORDER BY r.id LIMIT :most)
    """
)
# The row of an episode that goes on has no end: it keeps the episode from firing twice. What came back to
# life meanwhile has none any more, so it is looked at once more.
PENDING_EXECUTIONS: Final = sql(
    """
    DELETE FROM pending_executions WHERE ended_at < :before AND id IN (
        SELECT r.id FROM pending_executions r WHERE r.ended_at IS NOT NULL AND r.ended_at < :before
        ORDER BY r.ended_at LIMIT :most)
    """
)
# A replay of its run goes on with a step, so it is kept as long as its run has not ended or may be replayed.
IDLE_STEPS: Final = sql(
    """
    DELETE FROM idle_steps WHERE id IN (
        SELECT r.id FROM idle_steps r WHERE r.ended_at IS NOT NULL AND r.ended_at < :before
            AND NOT EXISTS (SELECT 1 FROM automation_runs u
                WHERE u.id = r.run_id AND (u.ended_at IS NULL OR u.status IN ('FAILED', 'DEAD_LETTER')))
        ORDER BY r.ended_at LIMIT :most)
    """
)
VERSIONS: Final = sql(
    """
    DELETE FROM automation_versions WHERE (automation_id, version) IN (
        SELECT v.automation_id, v.version FROM automation_versions v
        JOIN automations a ON a.id = v.automation_id
        WHERE a.deleted_at < :before
            AND NOT EXISTS (SELECT 1 FROM automation_runs r WHERE r.automation_id = a.id)
        ORDER BY v.automation_id, v.version LIMIT :most)
    """
)
IDEMPOTENCY_KEYS: Final = sql(
    """
    DELETE FROM idempotency_keys WHERE (api_key_id, key) IN (
        SELECT r.api_key_id, r.key FROM idempotency_keys r WHERE r.created_at < :before
        ORDER BY r.created_at LIMIT :most)
    """
)

_STATEMENTS: Final = MappingProxyType(
    {
        Ageing.LOGS_ALONE: LOGS_ALONE,
        Ageing.AUDIT: AUDIT,
        Ageing.NOTIFICATIONS: NOTIFICATIONS,
        Ageing.MESSAGES: MESSAGES,
        Ageing.ALERTS: ALERTS,
        Ageing.ALERT_SENDS: ALERT_SENDS,
        Ageing.ALERT_GROUPS: ALERT_GROUPS,
        Ageing.BULK_OPERATIONS: BULK_OPERATIONS,
        Ageing.PENDING_EXECUTIONS: PENDING_EXECUTIONS,
        Ageing.IDLE_STEPS: IDLE_STEPS,
        Ageing.VERSIONS: VERSIONS,
        Ageing.IDEMPOTENCY_KEYS: IDEMPOTENCY_KEYS,
    }
)


def forget(conn: Connection, what: Ageing, *, before: datetime, most: int) -> int:
    """Delete at most `most` of the oldest rows from before `before`; give how many they were."""
    statement: Sql = _STATEMENTS[what]
    values = {
        "before": write_instant(before),
        "bound": first_id(before + CLOCKS_APART),
        "most": most,
    }
    named = {name: value for name, value in values.items() if f":{name}" in statement.sqlite.text}
    return statement.run(conn, named).rowcount
