"""How far our clock is from that of the SQL server: leases and due times are compared across machines."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from shared.db.sql import sql

SKEW_MAX: Final = timedelta(seconds=2)

POSTGRES_NOW: Final = sql("SELECT clock_timestamp() AS now")


def clock_skew(conn: Connection, now: datetime) -> timedelta | None:
    """Give by how much `now` is ahead of the SQL server's time; None on SQLite, which has our clock."""
    if conn.dialect.name == "sqlite":
        return None
    theirs: datetime = POSTGRES_NOW.run(conn).scalar_one()
    return now - theirs
