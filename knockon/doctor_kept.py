"""What `knockon doctor` says about what is kept: the key of the secrets, and rows whose time is over."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from knockon.findings import Finding, Level
from shared.db.engine import Database
from shared.db.retention import Expiry, oldest_expired
from shared.errors import ConfigError
from shared.secrets import find_seal, key_file
from shared.services.sealed import name_some, sealed_secrets, unopened
from shared.settings import Settings
from shared.time.clock import SystemClock
from watchdog.retention import Retention

BEHIND: Final = timedelta(hours=3)
SET_ANEW: Final = "set each anew: knockon secrets set NAME"
DELETE_FIRST: Final = "delete each (knockon secrets delete NAME) and set it anew"


def examine_kept(database: Database, settings: Settings) -> Iterator[Finding]:
    """Look at the secrets and at the retention of a database that can be read."""
    yield _secrets(database, settings)
    yield _retention(database, settings)


def _secrets(database: Database, settings: Settings) -> Finding:
    with database.read() as conn:
        stored = sealed_secrets(conn)
    try:
        found = find_seal(settings)
    except ConfigError as error:
        return Finding(Level.FAIL, "secrets", str(error), "put the right key there")
    if found is None and stored:
        text = f"{len(stored)} are stored, and there is neither SECRETS_KEY nor {key_file(settings)}"
        return Finding(Level.FAIL, "secrets", text, f"bring the key back, or {DELETE_FIRST}")
    if found is None:
        return Finding(Level.OK, "secrets", "none, and no key")
    closed = unopened(found.seal, stored)
    if closed:
        text = f"{name_some(closed)} cannot be decrypted with the key of {found.source}"
        return Finding(Level.FAIL, "secrets", text, f"bring the old key back, or {DELETE_FIRST}")
    old = [secret for secret in stored if not all(map(found.seal.is_newest, secret.texts))]
    if old:
        text = f"{name_some(old)} still need the second key of {found.source}"
        return Finding(Level.WARN, "secrets", text, SET_ANEW)
    if found.source != "SECRETS_KEY" and database.dialect != "sqlite":
        text = f"{len(stored)}, under a key that lies on this machine alone: {found.source}"
        return Finding(Level.WARN, "secrets", text, "set SECRETS_KEY to what it holds, on every machine")
    return Finding(Level.OK, "secrets", f"{len(stored)}, under the key of {found.source}")


def _retention(database: Database, settings: Settings) -> Finding:
    kept = Retention(timedelta(days=settings.retention_days))
    due = SystemClock().now() - BEHIND
    with database.read() as conn:
        oldest = oldest_expired(conn, Expiry(due - kept.runs, due - kept.dead_letters))
    if oldest is None:
        return Finding(Level.OK, "retention", f"no run is kept beyond its {settings.retention_days} days")
    text = f"is behind: a run that ended {oldest.date()} is still there"
    return Finding(Level.WARN, "retention", text, "see that a watchdog runs; a large backlog takes it hours")
