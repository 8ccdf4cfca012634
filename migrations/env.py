"""What Alembic runs: the migrations, on the connection that `shared.db.migrating.migrate` opened."""

from alembic import context
from sqlalchemy import Connection, text

from shared.db.schema import METADATA

ONE_AT_A_TIME = 4_207_301


def run(connection: Connection) -> None:
    """Migrate in the caller's transaction; a second process that tries at the same time waits its turn."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ONE_AT_A_TIME})
    context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


run(context.config.attributes["connection"])
