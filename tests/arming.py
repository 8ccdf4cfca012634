"""A matcher with delayed automations, told events at hours of our own choosing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from matcher.intake import Intake
from matcher.stream import Arrival, Delivery, Reading
from shared.db.automations import AutomationRow
from shared.db.pending import COLUMNS, pending_row
from shared.db.sql import sql
from shared.db.subjects import find_subject
from shared.model.events import Context, EventDraft, encode_fields
from shared.model.pending import PendingRow
from shared.model.stamps import Stamp
from shared.model.subjects import SubjectRow
from shared.services.backends import Backends
from tests.matching import Post, open_post

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
IS_PENDING = {"field": "conversation.status", "op": "eq", "value": "pending"}
IS_OPEN = {"field": "conversation.status", "op": "eq", "value": "open"}
IS_INCOMING = {"field": "message.direction", "op": "eq", "value": "incoming"}
IS_OUTGOING = {"field": "message.direction", "op": "eq", "value": "outgoing"}
RETENTION = timedelta(days=36_500)

ALL_ROWS = sql(f"SELECT {COLUMNS} FROM pending_executions r ORDER BY r.created_at, r.id")

ROWS_ABOUT = sql(
    f"SELECT {COLUMNS} FROM pending_executions r WHERE r.subject_id = :id ORDER BY r.created_at, r.id"
)


def hour(clock: str, days: int = 0) -> datetime:
    """Give a moment of the week that begins on Monday."""
    hours, minutes = clock.split(":")
    return MONDAY + timedelta(days=days, hours=int(hours), minutes=int(minutes))


def stamp_of(at: datetime, seq: int = 0) -> Stamp:
    return int(at.timestamp() * 1000), seq


@dataclass(frozen=True)
class Told:
    """An event of the workspace w1 at a moment; two of one moment differ by `seq`."""

    at: datetime
    type: str
    payload: Mapping[str, Any]
    seq: int = 0
    id: str | None = None
    context: Context | None = None

    @property
    def stamp(self) -> Stamp:
        return stamp_of(self.at, self.seq)

    @property
    def entry_id(self) -> str:
        return f"{self.stamp[0]}-{self.stamp[1]}"

    def delivery(self, arrival: Arrival = Arrival.FRESH) -> Delivery:
        draft = EventDraft(self.type, "w1", self.payload, id=self.id, context=self.context)
        fields = {name.encode(): value.encode() for name, value in encode_fields(draft).items()}
        return Delivery(self.entry_id, fields, arrival, 1)


def conversation(at: datetime, type_: str = "updated", id_: str = "c1", **fields: Any) -> Told:
    """Tell of a conversation; `seq` and `context` are the event's own, all else are fields."""
    own = {name: fields.pop(name) for name in ("seq", "context") if name in fields}
    return Told(at, f"conversation.{type_}", {"conversation": {"id": id_, **fields}}, **own)


def message(at: datetime, id_: str, direction: str = "incoming", talk: str = "c1", **told: Any) -> Told:
    """Tell of a message of a conversation, by the contact or by an agent; `seq` is the event's own."""
    own = {name: told.pop(name) for name in ("seq", "context") if name in told}
    sender = "contact" if direction == "incoming" else "agent"
    given = {"id": id_, "direction": direction, "senderType": sender, **told}
    return Told(at, "message.created", {"conversation": {"id": talk}, "message": given}, **own)


@dataclass(frozen=True)
class Desk:
    """One matcher, and the rows that it writes."""

    post: Post

    @property
    def backends(self) -> Backends:
        return self.post.backends

    def rule(self, trigger: str = "CONVERSATION_UPDATED", delay: int = 240, **given: Any) -> AutomationRow:
        """Store an ACTIVE automation that waits `delay` minutes."""
        named = {"type": trigger, "config": given.pop("config", {})}
        return self.post.add(named, execution_delay=delay, **given)

    def tell(self, *told: Told, by: Intake | None = None) -> None:
        """Have events taken in as one set."""
        self.take([each.delivery() for each in told], by)

    def take(self, deliveries: Sequence[Delivery], by: Intake | None = None) -> None:
        version = int(self.backends.redis.get(self.backends.keys.index_version) or 0)
        (by or self.post.intake).take(Reading(tuple(deliveries), version))

    def rows(self) -> list[PendingRow]:
        """Give every row, oldest first."""
        with self.backends.database.read() as conn:
            return [pending_row(row) for row in ALL_ROWS.run(conn)]

    def row(self) -> PendingRow:
        (row,) = self.rows()
        return row

    def rows_about(self, id_: str) -> list[PendingRow]:
        """Give every row about one subject, oldest first."""
        with self.backends.database.read() as conn:
            return [pending_row(row) for row in ROWS_ABOUT.run(conn, {"id": id_})]

    def open(self) -> list[PendingRow]:
        """Give the rows whose episode goes on."""
        return [row for row in self.rows() if row.ended_at is None]

    def stands(self) -> list[tuple[str, str | None]]:
        """Give status and reason of each row, those that were over first, by their beginning."""
        rows = sorted(self.rows(), key=lambda row: (row.ended_at is None, row.episode.started_at))
        return [(row.status.value, row.skip_reason and row.skip_reason.value) for row in rows]

    def subject(self, id_: str = "c1", type_: str = "conversation") -> SubjectRow:
        with self.backends.database.read() as conn:
            found = find_subject(conn, "w1", type_, id_)
        assert found is not None
        return found

    def set(self, row: PendingRow, **columns: Any) -> None:
        """Put a row into a state as if a sweep or a person had."""
        named = ", ".join(f"{name} = :{name}" for name in columns)
        with self.backends.database.begin() as conn:
            sql(f"UPDATE pending_executions SET {named} WHERE id = :id").run(conn, {"id": row.id, **columns})

    def delayed(self, name: str) -> int:
        return self.post.count(f"automations:delayed:{name}")


def tell_one_by_one(desk: Desk, told: Iterable[Told]) -> None:
    """Have events taken in as sets of one."""
    for each in told:
        desk.tell(each)


def open_desk(backends: Backends) -> Desk:
    """Open a matcher on these servers."""
    return Desk(open_post(backends))


def another(desk: Desk) -> Intake:
    """Open another matcher beside."""
    return Intake(desk.backends, RETENTION)
