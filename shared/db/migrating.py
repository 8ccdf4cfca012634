"""The shape of the tables: brought to the newest, and asked whether it is. Only commands need it."""

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import make_url

from shared.db.engine import Database, open_database
from shared.folders import make_private

MIGRATIONS: Final = Path(__file__).resolve().parents[2] / "migrations"


def migrate(url: str) -> None:
    """Bring the database at `url` to the newest shape. Does nothing where it has it already."""
    database = open_database(url)
    try:
        if database.dialect == "sqlite":
            make_private(Path(make_url(url).database or "").parent)
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        with database.begin() as conn:
            config.attributes["connection"] = conn
            command.upgrade(config, "head")
    finally:
        database.dispose()


def missing_migrations(database: Database) -> list[str]:
    """Name the revisions that the database still lacks; empty when it is up to date."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    script = ScriptDirectory.from_config(config)
    with database.read() as conn:
        current = MigrationContext.configure(conn).get_current_revision()
    return [found.revision for found in reversed(list(script.iterate_revisions("head", current or "base")))]
