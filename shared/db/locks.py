"""Named locks as rows: one holder at a time, for work that must not depend on a process that may be gone."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from shared.db.sql import sql
from shared.db.types import write_instant

WATCHDOG: Final = "watchdog"  # whose holder is the elected one

TAKE_LOCK: Final = sql(
    """
    INSERT INTO locks (name, owner, until) VALUES (:name, :owner, :until)
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
    WHERE locks.owner = excluded.owner OR locks.until < :now
    """
)


def take_lock(conn: Connection, name: str, owner: str, *, now: datetime, hold: timedelta) -> bool:
    """Take or keep the lock until `now + hold`; False while another owner holds it."""
    values = {"name": name, "owner": owner, "now": write_instant(now), "until": write_instant(now + hold)}
    return TAKE_LOCK.run(conn, values).rowcount == 1


LOCK_HELD: Final = sql("SELECT 1 FROM locks WHERE name = :name AND until >= :now")


def is_lock_held(conn: Connection, name: str, *, now: datetime) -> bool:
    """Tell whether anybody holds the lock."""
    return LOCK_HELD.run(conn, {"name": name, "now": write_instant(now)}).first() is not None


DROP_LOCK: Final = sql("DELETE FROM locks WHERE name = :name AND owner = :owner")


def drop_lock(conn: Connection, name: str, owner: str) -> None:
    """Give the lock up, if it is ours."""
    DROP_LOCK.run(conn, {"name": name, "owner": owner})
