"""Channels of a workspace, each by the id that its conversations name as their inbox."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import sql
from shared.db.types import must_instant, read_any_json, write_instant
from shared.model.channels import ChannelKind


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A channel as it stands; `settings`, an object unless SQL wrote it, holds its idle rule."""

    id: str
    name: str
    kind: ChannelKind
    is_enabled: bool
    settings: object
    created_at: datetime
    updated_at: datetime


LIST_CHANNELS: Final = sql(
    """
    SELECT r.id, r.name, r.kind, r.enabled, r.settings, r.created_at, r.updated_at FROM channels r
    WHERE r.workspace_id = :workspace_id ORDER BY r.workspace_id, r.id LIMIT :most OFFSET :skipped
    """
)


def list_channels(conn: Connection, workspace_id: str, *, skipped: int, most: int) -> list[ChannelRow]:
    """Give a workspace's channels by id, but for the first ones."""
    rows = LIST_CHANNELS.run(conn, {"workspace_id": workspace_id, "skipped": skipped, "most": most})
    return [_channel(row) for row in rows]


COUNT_CHANNELS: Final = sql("SELECT count(*) FROM channels r WHERE r.workspace_id = :workspace_id")


def count_channels(conn: Connection, workspace_id: str) -> int:
    """Count a workspace's channels."""
    found: int = COUNT_CHANNELS.run(conn, {"workspace_id": workspace_id}).scalar_one()
    return found


FIND_CHANNEL: Final = sql(
    """
    SELECT r.id, r.name, r.kind, r.enabled, r.settings, r.created_at, r.updated_at FROM channels r
    WHERE r.workspace_id = :workspace_id AND r.id = :id
    """
)


def find_channel(conn: Connection, workspace_id: str, channel_id: str) -> ChannelRow | None:
    """Give a channel; None where there is none."""
    row = FIND_CHANNEL.run(conn, {"workspace_id": workspace_id, "id": channel_id}).first()
    return None if row is None else _channel(row)


LOCK_CHANNEL: Final = sql(
    """
    SELECT r.id, r.name, r.kind, r.enabled, r.settings, r.created_at, r.updated_at FROM channels r
    WHERE r.workspace_id = :workspace_id AND r.id = :id {lock}
    """
)


def lock_channel(conn: Connection, workspace_id: str, channel_id: str) -> ChannelRow | None:
    """Give a channel, locked until the transaction ends; None where there is none."""
    row = LOCK_CHANNEL.run(conn, {"workspace_id": workspace_id, "id": channel_id}).first()
    return None if row is None else _channel(row)


INSERT_CHANNEL: Final = sql(
    """
    INSERT INTO channels (workspace_id, id, name, kind, enabled, settings, created_at, updated_at)
    SELECT workspace_id, id, name, kind, enabled, settings, :now, :now FROM {rows} WHERE true
    ON CONFLICT (workspace_id, id) DO NOTHING
    """,
    workspace_id="text",
    id="text",
    name="text",
    kind="text",
    enabled="int",
    settings="jsonb",
)


def insert_channel(conn: Connection, workspace_id: str, channel: ChannelRow) -> bool:
    """Store a new channel; False where the id is taken."""
    now = write_instant(channel.created_at)
    return INSERT_CHANNEL.run_set(conn, [_values(workspace_id, channel)], now=now).rowcount == 1


SAVE_CHANNEL: Final = sql(
    """
    UPDATE channels SET name = x.name, kind = x.kind, enabled = x.enabled, settings = x.settings,
        updated_at = :now
    FROM {rows} WHERE channels.workspace_id = x.workspace_id AND channels.id = x.id
    """,
    workspace_id="text",
    id="text",
    name="text",
    kind="text",
    enabled="int",
    settings="jsonb",
)


def save_channel(conn: Connection, workspace_id: str, channel: ChannelRow) -> None:
    """Write a channel over its row, which the caller holds locked."""
    SAVE_CHANNEL.run_set(conn, [_values(workspace_id, channel)], now=write_instant(channel.updated_at))


DELETE_CHANNEL: Final = sql("DELETE FROM channels WHERE workspace_id = :workspace_id AND id = :id")


def delete_channel(conn: Connection, workspace_id: str, channel_id: str) -> None:
    """Drop a channel."""
    DELETE_CHANNEL.run(conn, {"workspace_id": workspace_id, "id": channel_id})


def _values(workspace_id: str, channel: ChannelRow) -> Mapping[str, Any]:
    return {
        "workspace_id": workspace_id,
        "id": channel.id,
        "name": channel.name,
        "kind": channel.kind,
        "enabled": int(channel.is_enabled),
        "settings": channel.settings,
    }


def _channel(row: Row[Any]) -> ChannelRow:
    return ChannelRow(
        id=row.id,
        name=row.name,
        kind=ChannelKind(row.kind),
        is_enabled=bool(row.enabled),
        settings=read_any_json(row.settings),
        created_at=must_instant(row.created_at),
        updated_at=must_instant(row.updated_at),
    )
