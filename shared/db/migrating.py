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
    """Name the revisions that the database still lacks; empty when it is up to date."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    script = ScriptDirectory.from_config(config)
    with database.read() as conn:
        current = _revision(conn)
    return [found.revision for found in reversed(list(script.iterate_revisions("head", current or "base")))]
