"""Messages to one address or webhook each: written when it was decided, then claimed, sent and ended.

A claim moves the row's time ahead, so that a process that dies while it sends is followed by another one,
and the message goes out a second time at most once for each such death, under the same id.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sql import sql
from shared.db.types import must_instant, read_json, write_instant
from shared.ids import new_id


class ChannelKind(StrEnum):
    """How a message travels."""

    MAIL = "mail"
    WEBHOOK = "webhook"


class SendStatus(StrEnum):
    """What became of a message to one target."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a message goes: a mail address, or the id of a channel."""

    kind: ChannelKind
    target: str


@dataclass(frozen=True, slots=True)
class NewSend:
    """A message to be sent; `message` is all that it says, as JSON."""

    workspace_id: str
    group_id: str
    automation_id: str | None
    address: Address
    message: Mapping[str, Any]


INSERT_SENDS: Final = sql(
    """
    INSERT INTO alert_sends (id, workspace_id, group_id, automation_id, channel, target, message, attempts,
        due_at, created_at, status)
    SELECT id, workspace_id, group_id, automation_id, channel, target, message, 0, :now, :now, 'pending'
    FROM {rows}
    """,
    id="text",
    workspace_id="text",
    group_id="text",
    automation_id="text",
    channel="text",
    target="text",
    message="jsonb",
)


def insert_sends(conn: Connection, sends: Iterable[NewSend], *, now: datetime) -> None:
    """Write messages that are due now, in the transaction of the decision."""
    rows = [
        {
            "id": new_id(),
            "workspace_id": send.workspace_id,
            "group_id": send.group_id,
            "automation_id": send.automation_id,
            "channel": send.address.kind,
            "target": send.address.target,
            "message": send.message,
        }
        for send in sends
    ]
    if rows:
        INSERT_SENDS.run_set(conn, rows, now=write_instant(now))


RECENT: Final = sql(
    """
    SELECT r.channel, r.target, r.group_id, r.automation_id, r.created_at FROM alert_sends r
    JOIN {rows} ON r.channel = x.channel AND r.target = x.target WHERE r.created_at > :after
    ORDER BY r.created_at
    """,
    channel="text",
    target="text",
)


@dataclass(frozen=True, slots=True)
class RecentSend:
    """A message that was written for a target lately; splitting one among people gives equal ones."""

    address: Address
    group_id: str
    automation_id: str | None
    at: datetime


def recent_sends(conn: Connection, addresses: Iterable[Address], *, after: datetime) -> list[RecentSend]:
    """Give what was written for these targets after an instant, oldest first."""
    rows = [{"channel": address.kind, "target": address.target} for address in addresses]
    found = RECENT.run_set(conn, rows, after=write_instant(after))
    return [
        RecentSend(
            Address(ChannelKind(row.channel), row.target),
            row.group_id,
            row.automation_id,
            must_instant(row.created_at),
        )
        for row in found
    ]


CLAIM: Final = sql(
    """
    UPDATE alert_sends SET due_at = :until, attempts = attempts + 1
    WHERE id = (SELECT r.id FROM alert_sends r WHERE r.due_at <= :now AND r.channel <> :but
        ORDER BY r.due_at, r.id LIMIT 1 {skip_locked})
    RETURNING id, workspace_id, group_id, channel, target, message, attempts
    """
)


@dataclass(frozen=True, slots=True)
class ClaimedSend:
    """A message that is ours to send for a while; `attempts` counts this one too."""

    id: str
    workspace_id: str
    group_id: str
    address: Address
    message: Mapping[str, Any]
    attempts: int


def claim_send(
    conn: Connection, but: ChannelKind | None, *, now: datetime, hold: timedelta
) -> ClaimedSend | None:
    """Claim the message that is due for longest, until `now + hold`; None where none is but of one kind."""
    values = {"but": but or "", "now": write_instant(now), "until": write_instant(now + hold)}
    row = CLAIM.run(conn, values).first()
    if row is None:
        return None
    address = Address(ChannelKind(row.channel), row.target)
    return ClaimedSend(row.id, row.workspace_id, row.group_id, address, read_json(row.message), row.attempts)


END: Final = sql(
    """
    UPDATE alert_sends SET status = :status, error = :error, due_at = :due_at, ended_at = :ended_at
    WHERE id = :id AND attempts = :attempts AND status = 'pending'
    """
)


def end_send(
    conn: Connection, send: ClaimedSend, error: str | None, again_at: datetime | None, *, now: datetime
) -> bool:
    """Write what came of a claim: sent without an error, else failed or tried `again_at`.

    False where another process has claimed it since: then this one was too late and writes nothing.
    """
    failed = SendStatus.PENDING if again_at else SendStatus.FAILED
    values = {
        "id": send.id,
        "attempts": send.attempts,
        "status": failed if error is not None else SendStatus.SENT,
        "error": error,
        "due_at": again_at and write_instant(again_at),
        "ended_at": None if again_at else write_instant(now),
    }
    return END.run(conn, values).rowcount == 1
