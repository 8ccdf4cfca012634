"""Channels: made, edited, deleted; audited. Their idle rules are checked here (docs/idle-sequences.md)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from shared.db.channels import (
    ChannelRow,
    delete_channel,
    find_channel,
    insert_channel,
    lock_channel,
    save_channel,
)
from shared.db.engine import Database
from shared.errors import IdTaken, NotFound
from shared.ids import new_id
from shared.model.channels import ChannelKind
from shared.rules.idle_rules import channel_plan
from shared.rules.values import is_same_json, object_of
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Caller
from shared.services.references import check_workspace
from shared.time.clock import Clock

CheckChannel = Callable[[ChannelRow], None]


@dataclass(frozen=True, slots=True)
class NewChannel:
    """A channel to be made, under an id of ours where none is given."""

    id: str | None
    name: str
    kind: ChannelKind
    is_enabled: bool
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChannelEdit:
    """New values; None leaves what there is. Of `settings` each key is replaced whole, the others stay.

    `check` raises what it finds against the channel as it stands.
    """

    name: str | None
    kind: ChannelKind | None
    is_enabled: bool | None
    settings: Mapping[str, Any]
    check: CheckChannel


def get_channel(conn: Connection, caller: Caller, channel_id: str) -> ChannelRow:
    """Give a channel of the caller's workspace. Raises NotFound."""
    found = find_channel(conn, caller.workspace_id, channel_id)
    if found is None:
        raise _no_channel(caller, channel_id)
    return found


def make_channel(database: Database, clock: Clock, caller: Caller, wanted: NewChannel) -> ChannelRow:
    """Make a channel. Raises MalformedIdleRule, IdTaken for a taken id, NotFound without the workspace."""
    channel_plan(wanted.settings)
    now = clock.now()
    id_ = wanted.id or new_id()
    row = ChannelRow(id_, wanted.name, wanted.kind, wanted.is_enabled, wanted.settings, now, now)

    def work(conn: Connection) -> ChannelRow:
        check_workspace(conn, caller.workspace_id)
        if not insert_channel(conn, caller.workspace_id, row):
            raise IdTaken(f"the id {row.id!r} is taken in workspace {caller.workspace_id!r}")
        write_deed(conn, caller, Deed("channel.created", row.id, None, _told(row)), now)
        return row

    return database.transact(work)


def edit_channel(
    database: Database, clock: Clock, caller: Caller, channel_id: str, wanted: ChannelEdit
) -> ChannelRow:
    """Change a channel; what fires from now on goes by it. The same again changes nothing.

    Raises NotFound, MalformedIdleRule, and what `wanted.check` raises.
    """
    now = clock.now()

    def work(conn: Connection) -> ChannelRow:
        before = _locked(conn, caller, channel_id)
        wanted.check(before)
        after = replace(
            before,
            name=wanted.name or before.name,
            kind=wanted.kind or before.kind,
            is_enabled=before.is_enabled if wanted.is_enabled is None else wanted.is_enabled,
            settings={**object_of(before.settings), **wanted.settings},
        )
        channel_plan(after.settings)
        if is_same_json(_told(before), _told(after)):
            return before
        after = replace(after, updated_at=now)
        save_channel(conn, caller.workspace_id, after)
        write_deed(conn, caller, Deed("channel.updated", channel_id, _told(before), _told(after)), now)
        return after

    return database.transact(work)


def drop_channel(
    database: Database, clock: Clock, caller: Caller, channel_id: str, check: CheckChannel
) -> None:
    """Delete a channel: its rule fires no more. Raises NotFound, and what `check` raises."""
    now = clock.now()

    def work(conn: Connection) -> None:
        before = _locked(conn, caller, channel_id)
        check(before)
        delete_channel(conn, caller.workspace_id, channel_id)
        write_deed(conn, caller, Deed("channel.deleted", channel_id, _told(before), None), now)

    database.transact(work)


def _locked(conn: Connection, caller: Caller, channel_id: str) -> ChannelRow:
    found = lock_channel(conn, caller.workspace_id, channel_id)
    if found is None:
        raise _no_channel(caller, channel_id)
    return found


def _no_channel(caller: Caller, channel_id: str) -> NotFound:
    return NotFound(f"there is no channel {channel_id!r} in workspace {caller.workspace_id!r}")


def _told(row: ChannelRow) -> Mapping[str, Any]:
    return {"name": row.name, "kind": row.kind, "enabled": row.is_enabled, "settings": row.settings}
