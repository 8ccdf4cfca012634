"""Secrets: set, deleted, and opened for the one action that asks for them. Nobody can read one back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.people import workspace_name
from shared.db.secrets import (
    SealedSecret,
    SecretRow,
    delete_secret,
    find_sealed,
    lock_secret,
    put_secret,
)
from shared.errors import ConfigError, FatalError, NotFound
from shared.rules.secret_names import NAME
from shared.sealing import Seal, Unreadable
from shared.secrets import find_seal
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Caller
from shared.settings import Settings
from shared.time.clock import Clock

VALUE_CHARS_MAX: Final = 16_384
MISSING: Final = "SECRET_MISSING"
UNREADABLE: Final = "SECRET_UNREADABLE"


@dataclass(frozen=True, slots=True)
class SecretStore:
    """Where secrets are kept, and the seal that they are closed with."""

    database: Database
    clock: Clock
    seal: Seal


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A secret as it stands after it was set, and whether its name is new."""

    row: SecretRow
    is_new: bool


def set_secret(store: SecretStore, caller: Caller, name: str, value: str) -> StoredSecret:
    """Store a value under a name of the caller's workspace.

    Raises ConfigError for a name or a value that cannot be, NotFound without the workspace.
    """
    _check(name, value)
    sealed = SealedSecret(caller.workspace_id, name, store.seal.close(value))
    now = store.clock.now()

    def work(conn: Connection) -> StoredSecret:
        if workspace_name(conn, caller.workspace_id) is None:
            raise NotFound(f"there is no workspace {caller.workspace_id!r}")
        before = lock_secret(conn, caller.workspace_id, name)
        put_secret(conn, sealed, now=now)
        what = "secret.created" if before is None else "secret.updated"
        write_deed(conn, caller, Deed(what, name, _told(before), {"updated_at": now}), now)
        return StoredSecret(SecretRow(name, before.created_at if before else now, now), before is None)

    return store.database.transact(work)


def drop_secret(database: Database, clock: Clock, caller: Caller, name: str) -> None:
    """Delete a secret of the caller's workspace. Raises NotFound."""
    now = clock.now()

    def work(conn: Connection) -> None:
        before = lock_secret(conn, caller.workspace_id, name)
        if before is None or not delete_secret(conn, caller.workspace_id, name):
            raise NotFound(f"there is no secret {name!r} in workspace {caller.workspace_id!r}")
        write_deed(conn, caller, Deed("secret.deleted", name, _told(before), None), now)

    database.transact(work)


def open_secrets(
    conn: Connection, settings: Settings, workspace_id: str, names: Sequence[str]
) -> dict[str, str]:
    """Give the values of these secrets, for one action.

    Raises FatalError: SECRET_MISSING for a name that is not there, SECRET_UNREADABLE for a value that this
    process has no key for. The message has the name.
    """
    sealed = find_sealed(conn, workspace_id, names)
    missing = [name for name in names if name not in sealed]
    if missing:
        raise FatalError(MISSING, f"there is no secret {', '.join(missing)} in the workspace")
    seal = _must_find_seal(settings, names)
    return {name: _open(seal, name, sealed[name]) for name in names}


def _must_find_seal(settings: Settings, names: Sequence[str]) -> Seal:
    try:
        found = find_seal(settings)
    except ConfigError as error:
        raise FatalError(UNREADABLE, f"secret {names[0]}: {error}") from None
    if found is None:
        said = "this process has neither SECRETS_KEY nor the key file of the data folder"
        raise FatalError(UNREADABLE, f"secret {names[0]} cannot be decrypted: {said}")
    return found.seal


def _open(seal: Seal, name: str, sealed: str) -> str:
    try:
        return seal.open(sealed)
    except Unreadable:
        said = "it was stored under another key than this process has"
        raise FatalError(UNREADABLE, f"secret {name} cannot be decrypted: {said}") from None


def _check(name: str, value: str) -> None:
    if NAME.fullmatch(name) is None:
        raise ConfigError(
            "a secret's name has at most 100 letters, digits and underscores, the first of them no digit"
        )
    if not 1 <= len(value) <= VALUE_CHARS_MAX:
        raise ConfigError(f"a secret's value has 1 to {VALUE_CHARS_MAX:,} characters")
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise ConfigError("a secret's value is UTF-8 text; encode other bytes in base64")


def _told(row: SecretRow | None) -> Mapping[str, datetime] | None:
    return None if row is None else {"updated_at": row.updated_at}
