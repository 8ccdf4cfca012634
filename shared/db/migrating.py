"""The shape of the tables: brought to the newest, and asked whether it is. Only commands need it."""

from enum import StrEnum
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from shared.db.engine import Database, open_database, sqlite_file
from shared.folders import make_private, make_private_file

MIGRATIONS: Final = Path(__file__).resolve().parents[2] / "migrations"


class Migrated(StrEnum):
    """What `migrate` did, as it stands after the database's name."""

    MADE = "was empty and has its tables now"
    CHANGED = "is up to date now"
    LEFT = "was up to date already"
    LATER = "has the shape of a later version, and is left as it is"


def migrate(url: str) -> Migrated:
    """Bring the database at `url` to the newest shape. Does nothing where it has it already."""
    database = open_database(url)
    try:
        file = sqlite_file(url)
        if file is not None:
            make_private(file.parent)
            make_private_file(file)
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        with database.begin() as conn:
            before = _revision(conn)
            if not _is_known(before):
                return Migrated.LATER
            config.attributes["connection"] = conn
            command.upgrade(config, "head")
            if before is None:
                return Migrated.MADE
            return Migrated.LEFT if before == _revision(conn) else Migrated.CHANGED
    finally:
        database.dispose()


def _revision(conn: Connection) -> str | None:
    return MigrationContext.configure(conn).get_current_revision()


def missing_migrations(database: Database) -> list[str]:
    """Name the revisions that the database still lacks; none when it is up to date, or later than we are."""
    with database.read() as conn:
        current = _revision(conn)
    if not _is_known(current):
        return []
    found = _scripts().iterate_revisions("head", current or "base")
    return [each.revision for each in reversed(list(found))]


def is_later(database: Database) -> bool:
    """Tell whether a later version made the tables: this one works on them, since migrations only add."""
    with database.read() as conn:
        return not _is_known(_revision(conn))


def _is_known(revision: str | None) -> bool:
    return revision is None or any(each.revision == revision for each in _scripts().walk_revisions())


def _scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return ScriptDirectory.from_config(config)
