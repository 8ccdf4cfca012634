"""The whole road of an event on hours of our own choosing: what is told when, and what a sweep makes of it.

The week lies far ahead: an entry of the stream has its hour in its id, and what the engine adds by itself is
then no newer than what was told last.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.db.pending import COLUMNS, pending_row
from shared.db.sql import sql
from shared.model.events import Context, EventDraft, encode_fields
from shared.model.pending import PendingRow
from tests.field.road import Road

MONDAY = datetime(2096, 3, 5, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
INCOMING = {"field": "message.direction", "op": "eq", "value": "incoming"}
OUTGOING = {"field": "message.direction", "op": "eq", "value": "outgoing"}

ALL_ROWS = sql(f"SELECT {COLUMNS} FROM pending_executions r ORDER BY r.started_at, r.id")


def hour(clock: str, days: int = 0) -> datetime:
    """Give a moment of the week that begins on Monday."""
    hours, minutes = clock.split(":")
    return MONDAY + timedelta(days=days, hours=int(hours), minutes=int(minutes))


def status_is(value: str) -> dict[str, str]:
    """Give the condition that a conversation has a status."""
    return {"field": "conversation.status", "op": "eq", "value": value}


@dataclass
class Day:
    """One deployment, told of things one after the other. The workspace is w1, the conversation c1."""

    road: Road
    said: int = 0

    def at(self, clock: str, days: int = 0) -> "Day":
        """Let time pass until a moment of the week; what comes due meanwhile is left for a sweep."""
        self.road.clock.advance(hour(clock, days) - self.road.clock.now())
        return self

    def after(self, by: timedelta) -> "Day":
        self.road.clock.advance(by)
        return self

    def rule(self, trigger: str, delay: int | None, *actions: Any, **given: Any) -> str:
        """Apply an ACTIVE automation that waits `delay` minutes, and give its id."""
        waits = {} if delay is None else {"execution_delay": delay}
        return self.road.automation(*actions, on={"type": trigger}, **waits, **given)

    def publish(self, type_: str, payload: dict[str, Any], context: Context | None = None) -> str:
        """Put an event on the stream as of now and give its entry id; nobody has read it yet."""
        client: Any = self.road.post.backends.redis
        keys = self.road.post.backends.keys
        stamp = (int(self.road.clock.now().timestamp() * 1_000), 0)
        if client.exists(keys.stream):
            last_ms, last_seq = client.xinfo_stream(keys.stream)["last-generated-id"].decode().split("-")
            stamp = max(stamp, (int(last_ms), int(last_seq) + 1))
        fields = encode_fields(EventDraft(type_, "w1", payload, context=context))
        self.road.published += 1
        entry_id: bytes = client.xadd(keys.stream, fields, id=f"{stamp[0]}-{stamp[1]}")
        return entry_id.decode()

    def tell(self, type_: str, payload: dict[str, Any]) -> str:
        """Publish an event, and let the road come to rest."""
        entry_id = self.publish(type_, payload)
        self.road.rest()
        return entry_id

    def conversation(self, verb: str = "updated", id_: str = "c1", **fields: Any) -> str:
        """Tell of a conversation."""
        return self.tell(f"conversation.{verb}", {"conversation": {"id": id_, **fields}})

    def message(self, direction: str, id_: str = "c1", **told: Any) -> str:
        """Tell of a message, an agent's or the contact's; give the message's id."""
        self.said += 1
        sender = "contact" if direction == "incoming" else "agent"
        given = {"id": f"m{self.said}", "direction": direction, "senderType": sender, **told}
        self.tell("message.created", {"conversation": {"id": id_}, "message": given})
        return str(given["id"])

    def sweep(self) -> None:
        """Fire what is due now, and let its runs end."""
        self.road.sweep()
        self.road.rest()

    def rows(self) -> list[PendingRow]:
        """Give what waits and what has waited, by the beginning of the episode."""
        with self.road.room.database.read() as conn:
            return [pending_row(row) for row in ALL_ROWS.run(conn)]

    def row(self) -> PendingRow:
        (row,) = self.rows()
        return row

    def stands(self) -> list[tuple[str, str | None]]:
        """Give status and reason of each row, by the beginning of the episode."""
        return [(row.status.value, row.skip_reason and row.skip_reason.value) for row in self.rows()]

    def labels(self, id_: str = "c1") -> list[str]:
        """Give a conversation's labels."""
        labels: list[str] = self.road.data(id_).get("labels", [])
        return labels


def sent(day: Day) -> list[str]:
    """Give what automations have said, oldest first."""
    query = "SELECT content FROM messages WHERE sender_type = 'automation' ORDER BY stamp_ms, stamp_seq"
    return [row.content for row in day.road.room.all(query)]
