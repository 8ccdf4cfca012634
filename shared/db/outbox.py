"""Events that our own work emits: written with the change they tell of, sent to the stream after it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sheet import Sheet, put
from shared.db.sql import sql
from shared.db.types import read_json, write_instant


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One event to be sent: `fields` as `encode_fields` gives them, ready for XADD.

    Its id is the event's id too, so that a second sending starts nothing twice.
    """

    id: str
    workspace_id: str
    run_id: str | None
    fields: Mapping[str, Any]


INSERT_OUTBOX: Final = sql(
    """
    INSERT INTO outbox (id, workspace_id, run_id, fields, created_at)
    SELECT id, workspace_id, run_id, fields, :now FROM {rows}
    """,
    id="text",
    workspace_id="text",
    run_id="text",
    fields="jsonb",
)


def insert_outbox(where: Connection | Sheet, entries: Iterable[OutboxEntry], *, now: datetime) -> None:
    """Write events to be sent, in the order of their ids."""
    rows = [
        {"id": entry.id, "workspace_id": entry.workspace_id, "run_id": entry.run_id, "fields": entry.fields}
        for entry in entries
    ]
    put(where, INSERT_OUTBOX, rows, now=write_instant(now))


MARK_SENT: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM outbox r JOIN {rows} ON r.id = x.id WHERE r.sent_at IS NULL ORDER BY r.id {lock})
    UPDATE outbox SET sent_at = :now FROM k WHERE outbox.id = k.id
    """,
    id="text",
)


def mark_sent(conn: Connection, ids: Iterable[str], *, now: datetime) -> None:
    """Note that these events are on the stream. A second call changes nothing."""
    MARK_SENT.run_set(conn, ({"id": found} for found in ids), now=write_instant(now))


CLAIM_UNSENT: Final = sql(
    """
    SELECT r.id, r.workspace_id, r.run_id, r.fields FROM outbox r
    WHERE r.sent_at IS NULL AND r.created_at < :before ORDER BY r.created_at LIMIT :most {skip_locked}
    """
)


def lock_unsent(conn: Connection, *, before: datetime, most: int) -> list[OutboxEntry]:
    """Lock and give the oldest events written before `before` and not sent; skip what another one relays."""
    rows = CLAIM_UNSENT.run(conn, {"before": write_instant(before), "most": most})
    return [OutboxEntry(row.id, row.workspace_id, row.run_id, read_json(row.fields)) for row in rows]


DELETE_SENT: Final = sql(
    """
    DELETE FROM outbox WHERE id IN (
        SELECT r.id FROM outbox r WHERE r.sent_at < :before ORDER BY r.id LIMIT :most {skip_locked})
    """
)


def delete_sent(conn: Connection, *, before: datetime, most: int) -> int:
    """Forget at most `most` events that were sent before `before`; give how many they were."""
    return DELETE_SENT.run(conn, {"before": write_instant(before), "most": most}).rowcount
