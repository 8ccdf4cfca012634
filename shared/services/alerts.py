"""What people do about alerts: mute a group, add and remove the channels that tell of them."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from shared.db.alert_channels import MAIL_NAME, Channel, delete_channel, insert_channel
from shared.db.alert_groups import GroupRow, lock_group, mute_group
from shared.db.alert_sends import ChannelKind
from shared.db.engine import Database
from shared.db.people import workspace_name
from shared.errors import ConfigError, Conflict, NotFound
from shared.ids import new_id
from shared.rules.url_hosts import blocked_host
from shared.sealing import Seal
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Caller
from shared.signing import read_keys
from shared.time.clock import Clock

MUTED_AT_MOST: Final = timedelta(days=366)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")


@dataclass(frozen=True, slots=True)
class NewChannel:
    """A webhook to be told: the name that people give it, its URL, and what its messages are signed with."""

    name: str
    url: str
    secret: str | None


def mute_alerts(
    database: Database, clock: Clock, caller: Caller, what: tuple[str, timedelta]
) -> tuple[GroupRow, datetime]:
    """Mute a group, named by its fingerprint or id, for a while; a while of no length ends the muting.

    Gives the group as it was, and the end. Raises NotFound, and ConfigError for more than a year.
    """
    reference, span = what
    if span > MUTED_AT_MOST:
        raise ConfigError(f"a group is muted for at most {MUTED_AT_MOST.days} days")
    now = clock.now()
    until = now + span

    def work(conn: Connection) -> GroupRow:
        row = lock_group(conn, caller.workspace_id, reference)
        if row is None:
            raise NotFound(f"there is no alert {reference!r} in workspace {caller.workspace_id!r}")
        mute_group(conn, row.group.id, until, now=now)
        more = {"fingerprint": row.fingerprint}
        deed = Deed("alert_group.muted", row.group.id, row.group.muted_until, until, more)
        write_deed(conn, caller, deed, now)
        return row

    return database.transact(work), until


def check_reach(url: str) -> None:
    """Raise ConfigError for a URL whose host is forbidden by its text, as webhooks are (docs/security.md)."""
    rule = blocked_host(url)
    if rule is not None:
        raise ConfigError(
            f"no webhook may reach this host ({rule}); WEBHOOK_ALLOW_PRIVATE=true would allow it"
        )


def add_channel(database: Database, clock: Clock, seal: Seal, caller: Caller, wanted: NewChannel) -> Channel:
    """Add a webhook, whose URL the caller has checked; it is stored encrypted.

    Raises ConfigError for a name or a secret that cannot be, Conflict where the name is taken, NotFound.
    """
    _check(wanted)
    now = clock.now()
    channel = Channel(
        id=new_id(),
        workspace_id=caller.workspace_id,
        name=wanted.name,
        kind=ChannelKind.WEBHOOK,
        url=seal.close(wanted.url),
        secret=seal.close(wanted.secret) if wanted.secret is not None else None,
        failures=0,
        broken_at=None,
        created_at=now,
    )

    def work(conn: Connection) -> None:
        if workspace_name(conn, caller.workspace_id) is None:
            raise NotFound(f"there is no workspace {caller.workspace_id!r}")
        if not insert_channel(conn, channel):
            raise Conflict(f"there is a channel {wanted.name!r} already; remove it first")
        write_deed(conn, caller, Deed("alert_channel.added", channel.id, None, {"name": wanted.name}), now)

    database.transact(work)
    return channel


def remove_channel(database: Database, clock: Clock, caller: Caller, name: str) -> None:
    """Remove a webhook; what was to be sent to it is dropped. Raises NotFound."""
    now = clock.now()

    def work(conn: Connection) -> None:
        channel_id = delete_channel(conn, caller.workspace_id, name)
        if channel_id is None:
            raise NotFound(f"there is no channel {name!r} in workspace {caller.workspace_id!r}")
        write_deed(conn, caller, Deed("alert_channel.removed", channel_id, {"name": name}, None), now)

    database.transact(work)


def _check(wanted: NewChannel) -> None:
    if not _NAME.fullmatch(wanted.name) or wanted.name == MAIL_NAME:
        raise ConfigError(
            "a channel's name has at most 100 letters, digits, dots, dashes and underscores,"
            f" the first of them a letter or a digit, and is not {MAIL_NAME!r}"
        )
    if wanted.secret is not None:
        try:
            read_keys(wanted.secret)
        except ValueError as error:
            raise ConfigError(f"the secret: {error}") from None
