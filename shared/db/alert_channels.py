"""Where a workspace's alerts go beside the inbox, and how that went of late.

A webhook is a row from the beginning. Mail goes to the members and needs none; it gets one, of the kind
`mail`, once it fails.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.alert_sends import ChannelKind
from shared.db.people import ADMIN_ROLES
from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, write_instant
from shared.ids import new_id

MAIL_NAME: Final = "mail"
BROKEN_AFTER: Final = 10


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel as it is stored; `url` and `secret` are encrypted."""

    id: str
    workspace_id: str
    name: str
    kind: ChannelKind
    url: str
    secret: str | None
    failures: int
    broken_at: datetime | None
    created_at: datetime


LIST: Final = sql("SELECT r.* FROM alert_channels r WHERE r.workspace_id = :workspace_id ORDER BY r.name")
FIND: Final = sql("SELECT r.* FROM alert_channels r WHERE r.workspace_id = :workspace_id AND r.id = :id")
LIST_WEBHOOKS: Final = sql(
    "SELECT r.* FROM alert_channels r WHERE r.kind = 'webhook' ORDER BY r.workspace_id, r.name LIMIT :most"
)
LIST_BROKEN: Final = sql("SELECT r.* FROM alert_channels r WHERE r.broken_at IS NOT NULL ORDER BY r.name")


def list_channels(conn: Connection, workspace_id: str) -> list[Channel]:
    """Give a workspace's channels by name."""
    return [_channel(row) for row in LIST.run(conn, {"workspace_id": workspace_id})]


def find_channel(conn: Connection, workspace_id: str, channel_id: str) -> Channel | None:
    """Give one channel, or None where it was removed."""
    row = FIND.run(conn, {"workspace_id": workspace_id, "id": channel_id}).first()
    return _channel(row) if row else None


def all_webhooks(conn: Connection, *, most: int) -> list[Channel]:
    """Give webhooks of all workspaces, for a look at whether they can be opened."""
    return [_channel(row) for row in LIST_WEBHOOKS.run(conn, {"most": most})]


def broken_channels(conn: Connection) -> list[Channel]:
    """Give the broken channels of all workspaces."""
    return [_channel(row) for row in LIST_BROKEN.run(conn)]


def _channel(row: Row[Any]) -> Channel:
    return Channel(
        id=row.id,
        workspace_id=row.workspace_id,
        name=row.name,
        kind=ChannelKind(row.kind),
        url=row.url,
        secret=row.secret,
        failures=row.failures,
        broken_at=read_instant(row.broken_at),
        created_at=must_instant(row.created_at),
    )


ADDRESSES: Final = sql(
    "SELECT r.email, r.role FROM members r WHERE r.workspace_id = :workspace_id ORDER BY r.id"
)


def admin_addresses(conn: Connection, workspace_id: str) -> list[str]:
    """Give the mail addresses of those who are told of dead letters."""
    rows = ADDRESSES.run(conn, {"workspace_id": workspace_id})
    return [row.email for row in rows if row.role in ADMIN_ROLES]


INSERT: Final = sql(
    """
    INSERT INTO alert_channels (id, workspace_id, name, kind, url, secret, failures, created_at)
    VALUES (:id, :workspace_id, :name, :kind, :url, :secret, 0, :now)
    ON CONFLICT (workspace_id, name) DO NOTHING
    """
)


def insert_channel(conn: Connection, channel: Channel) -> bool:
    """Add a channel; False where the workspace has one of this name."""
    values = {
        "id": channel.id,
        "workspace_id": channel.workspace_id,
        "name": channel.name,
        "kind": channel.kind,
        "url": channel.url,
        "secret": channel.secret,
        "now": write_instant(channel.created_at),
    }
    return INSERT.run(conn, values).rowcount == 1


DELETE: Final = sql(
    "DELETE FROM alert_channels WHERE workspace_id = :workspace_id AND name = :name AND kind = 'webhook'"
    " RETURNING id"
)


def delete_channel(conn: Connection, workspace_id: str, name: str) -> str | None:
    """Remove a webhook and give its id, or None where there is none of this name."""
    found: str | None = DELETE.run(conn, {"workspace_id": workspace_id, "name": name}).scalar()
    return found


NOTE_FAILURE: Final = sql(
    """
    UPDATE alert_channels SET failures = failures + 1,
        broken_at = CASE WHEN failures + 1 >= :most THEN COALESCE(broken_at, :now) ELSE broken_at END
    WHERE workspace_id = :workspace_id AND (id = :target OR (kind = 'mail' AND :target = 'mail'))
    RETURNING id, name, failures
    """
)
NOTE_SUCCESS: Final = sql(
    """
    UPDATE alert_channels SET failures = 0, broken_at = NULL
    WHERE workspace_id = :workspace_id AND failures > 0
        AND (id = :target OR (kind = 'mail' AND :target = 'mail'))
    """
)


@dataclass(frozen=True, slots=True)
class ChannelFailure:
    """A channel that has failed once more, so many times in a row now."""

    id: str
    name: str
    failures: int

    @property
    def has_broken(self) -> bool:
        """Tell whether it counts as broken from this failure on."""
        return self.failures == BROKEN_AFTER


def note_failure(
    conn: Connection, workspace_id: str, channel: str, *, now: datetime
) -> ChannelFailure | None:
    """Count a failure of a channel, named by its id or `mail`; None where it was removed."""
    if channel == MAIL_NAME:
        made = Channel(
            new_id(), workspace_id, MAIL_NAME, ChannelKind.MAIL, "", None, 0, broken_at=None, created_at=now
        )
        insert_channel(conn, made)
    values = {
        "workspace_id": workspace_id,
        "target": channel,
        "most": BROKEN_AFTER,
        "now": write_instant(now),
    }
    row = NOTE_FAILURE.run(conn, values).first()
    return ChannelFailure(row.id, row.name, row.failures) if row else None


def note_success(conn: Connection, workspace_id: str, channel: str) -> bool:
    """Begin the count of failures anew; False where there were none."""
    return NOTE_SUCCESS.run(conn, {"workspace_id": workspace_id, "target": channel}).rowcount > 0
