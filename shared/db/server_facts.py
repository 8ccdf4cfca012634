"""What kind of PostgreSQL there is behind a connection, for whoever checks a deployment."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from shared.db.sql import sql

POSTGRES_FACTS: Final = sql(
    """
    SELECT CAST(current_setting('server_version_num') AS integer) / 10000 AS version,
        current_setting('server_encoding') AS encoding, current_setting('TimeZone') AS zone,
        pg_is_in_recovery() AS is_standby, CAST(current_setting('max_connections') AS integer) AS connections
    """
)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a PostgreSQL tells of itself; `zone` is that of our own connection."""

    version: int
    encoding: str
    zone: str
    is_standby: bool
    connections: int


def server_facts(conn: Connection) -> ServerFacts | None:
    """Ask the server; None on SQLite, which has none."""
    if conn.dialect.name == "sqlite":
        return None
    row = POSTGRES_FACTS.run(conn).one()
    return ServerFacts(row.version, row.encoding, row.zone, row.is_standby, row.connections)
