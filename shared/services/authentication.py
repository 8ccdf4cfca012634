"""Whom a key belongs to. It is looked up by its hash; its use is noted apart, at most once a minute."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.db.api_keys import find_api_key, note_use
from shared.db.engine import Database
from shared.services.backends import Caller
from shared.services.workspaces import KEY_PREFIX, hash_key
from shared.time.clock import Clock

NOTED_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key that may be used: who asks with it, and what it may do."""

    id: str
    caller: Caller
    scopes: frozenset[str]
    is_note_due: bool = False


def recognize(database: Database, clock: Clock, text: str) -> KnownKey | None:
    """Give what is known of a key; None for one that is not there or was revoked. It only reads."""
    if not text.startswith(KEY_PREFIX):
        return None
    with database.read() as conn:
        row = find_api_key(conn, hash_key(text))
    if row is None or row.revoked_at is not None:
        return None
    is_due = row.last_used_at is None or row.last_used_at <= clock.now() - NOTED_EVERY
    caller = Caller(row.workspace_id, f"KEY {row.name} {row.last4}")
    return KnownKey(row.id, caller, frozenset(row.scopes), is_due)


def note_use_of(database: Database, clock: Clock, key: KnownKey) -> None:
    """Note that a key is used now, unless that was noted within a minute."""
    now = clock.now()
    database.transact(lambda conn: note_use(conn, key.id, before=now - NOTED_EVERY, now=now))
