"""What is stored sealed, secrets and channels, and whether the keys of this process open it.

Nothing more is sealed where something does not open: a lost key would go unnoticed, and the store would be
split between two (docs/security.md, "Secret store").
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from shared.db.alert_channels import all_webhooks
from shared.db.engine import Database
from shared.db.secrets import all_sealed
from shared.errors import Conflict
from shared.sealing import Seal, Unreadable
from shared.secrets import find_seal, key_file, make_seal
from shared.settings import Settings

LOOKED_AT: Final = 1_000
NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Sealed:
    """A thing that people know by its name, and the texts of it that are sealed."""

    workspace_id: str
    name: str
    texts: tuple[str, ...]


def sealed_secrets(conn: Connection) -> list[Sealed]:
    """Give the secrets of all workspaces."""
    return [Sealed(each.workspace_id, each.name, (each.sealed,)) for each in all_sealed(conn, most=LOOKED_AT)]


def sealed_channels(conn: Connection) -> list[Sealed]:
    """Give the alert channels of all workspaces that have a URL."""
    return [
        Sealed(each.workspace_id, each.name, tuple(filter(None, (each.url, each.secret))))
        for each in all_webhooks(conn, most=LOOKED_AT)
    ]


def opens(seal: Seal | None, texts: Iterable[str]) -> bool:
    """Tell whether a seal opens all of these texts."""
    try:
        for text in texts:
            if seal is None:
                return False
            seal.open(text)
    except Unreadable:
        return False
    return True


def unopened(seal: Seal | None, things: Iterable[Sealed]) -> list[Sealed]:
    """Give the things that a seal does not open."""
    return [each for each in things if not opens(seal, each.texts)]


def name_some(things: Sequence[Sealed]) -> str:
    """Name things with their workspaces, a few of them if they are many."""
    shown = ", ".join(f"{each.name} ({each.workspace_id})" for each in things[:NAMED])
    return shown if len(things) <= NAMED else f"{shown} and {len(things) - NAMED} more"


def seal_to_write(database: Database, settings: Settings) -> Seal:
    """Give the seal for a new value; its key is made where there is none and nothing is sealed yet.

    Raises Conflict while something is stored that the present keys do not open, ConfigError for a bad key.
    """
    with database.read() as conn:
        secrets, channels = sealed_secrets(conn), sealed_channels(conn)
    # Looked for after the read: whoever stored something in between has made the key first.
    found = find_seal(settings)
    seal = found.seal if found else None
    closed = [
        f"{what} {name_some(some)}"
        for what, some in (("secrets", unopened(seal, secrets)), ("channels", unopened(seal, channels)))
        if some
    ]
    if closed:
        why = f"the key of {found.source} does not open" if found else "there is no key for"
        raise Conflict(
            f"{why} what is stored already: {'; '.join(closed)}. Bring the right key back"
            f" (SECRETS_KEY, or {key_file(settings)}), or delete these first",
            fix="knockon secrets delete NAME, knockon alerts channels remove NAME",
        )
    return make_seal(settings)
