"""Workspaces come into being with an owner and a first key; more keys are made and revoked later."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final

from sqlalchemy import Connection

from shared.db.api_keys import find_key_by_id, revoke_api_key
from shared.db.engine import Database
from shared.db.people import (
    ApiKeyRow,
    Member,
    insert_api_key,
    insert_member,
    insert_workspace,
)
from shared.errors import ConfigError, NotFound
from shared.ids import new_id
from shared.model.names import check_name
from shared.model.roles import Role
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Caller
from shared.services.references import check_workspace
from shared.time.clock import Clock

KEY_PREFIX: Final = "kn_live_"
KEY_BYTES: Final = 32
EMAIL_MAX: Final = 254

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_WORKSPACE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")


class Scope(StrEnum):
    """What a key may do."""

    EVENTS_READ = "events:read"
    EVENTS_WRITE = "events:write"
    AUTOMATIONS_READ = "automations:read"
    AUTOMATIONS_WRITE = "automations:write"
    RUNS_READ = "runs:read"
    RUNS_WRITE = "runs:write"
    SUBJECTS_READ = "subjects:read"
    SUBJECTS_WRITE = "subjects:write"
    AGENTS_READ = "agents:read"
    AGENTS_WRITE = "agents:write"
    MESSAGES_READ = "messages:read"
    MESSAGES_WRITE = "messages:write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A new key. `text` is nowhere but here: only its hash is stored."""

    id: str
    text: str


def create_workspace(database: Database, clock: Clock, caller: Caller, owner_email: str) -> MadeKey | None:
    """Make the caller's workspace, its owner and a key that may do everything; None if it is there already.

    Raises ConfigError for a name that no workspace can have, and for an owner that is no mail address.
    """
    if not _WORKSPACE.fullmatch(caller.workspace_id):
        raise ConfigError(
            "a workspace's name has at most 100 letters, digits, dots, dashes and underscores,"
            " the first of them a letter or a digit"
        )
    if len(owner_email) > EMAIL_MAX or not owner_email.isprintable() or not _EMAIL.fullmatch(owner_email):
        raise ConfigError(f"the owner {owner_email!r} is no mail address; write it like anna@example.org")
    now = clock.now()

    def work(conn: Connection) -> MadeKey | None:
        if not insert_workspace(conn, caller.workspace_id, caller.workspace_id, now=now):
            return None
        owner = Member(new_id(), caller.workspace_id, owner_email, owner_email, Role.OWNER)
        insert_member(conn, owner, now=now)
        after = {"name": caller.workspace_id, "owner": owner_email}
        write_deed(conn, caller, Deed("workspace.created", caller.workspace_id, None, after), now)
        return _insert_key(conn, caller, ("first key", list(Scope)), now)

    return database.transact(work)


def create_key(
    database: Database, clock: Clock, caller: Caller, wanted: tuple[str, Sequence[Scope]]
) -> MadeKey:
    """Make a key of the caller's workspace with a name and scopes.

    Raises NotFound without the workspace, ConfigError for a name that says nothing or hides what it says.
    """
    try:
        check_name(wanted[0])
    except ValueError as error:
        raise ConfigError(f"the key's name {error}") from None
    now = clock.now()

    def work(conn: Connection) -> MadeKey:
        check_workspace(conn, caller.workspace_id)
        return _insert_key(conn, caller, wanted, now)

    return database.transact(work)


def revoke_key(database: Database, clock: Clock, caller: Caller, key_id: str) -> None:
    """End a key of the caller's workspace. Raises NotFound; a second call changes nothing."""
    now = clock.now()

    def work(conn: Connection) -> None:
        check_workspace(conn, caller.workspace_id)
        before = find_key_by_id(conn, caller.workspace_id, key_id)
        if before is None or not revoke_api_key(conn, caller.workspace_id, key_id, now=now):
            raise NotFound(f"there is no key {key_id!r} in workspace {caller.workspace_id!r}")
        if before.revoked_at is None:
            told = {"name": before.name, "revoked_at": None}
            write_deed(conn, caller, Deed("api_key.revoked", key_id, told, {**told, "revoked_at": now}), now)

    database.transact(work)


def hash_key(text: str) -> str:
    """Give what is stored of a key and looked up for one: its SHA-256, in hex."""
    return sha256(text.encode()).hexdigest()


def _insert_key(
    conn: Connection, caller: Caller, wanted: tuple[str, Sequence[Scope]], now: datetime
) -> MadeKey:
    name, scopes = wanted
    made = MadeKey(new_id(), KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES))
    stored = ApiKeyRow(made.id, caller.workspace_id, name, hash_key(made.text), made.text[-4:], tuple(scopes))
    insert_api_key(conn, stored, now=now)
    after = {"name": name, "scopes": list(scopes), "last4": stored.last4}
    write_deed(conn, caller, Deed("api_key.created", made.id, None, after), now)
    return made
