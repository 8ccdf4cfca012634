"""Runs whose time is over: found by a walk over the primary key, deleted with all that belongs to them.

An id tells when a run was made, and a run that ended before an instant was made before it. So what may have
ended by then stands in one stretch of the primary key, and no other index is needed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from shared.db.sql import sql
from shared.db.types import read_instant, write_instant
from shared.ids import first_id

CLOCKS_APART: Final = timedelta(hours=1)  # the id's clock may be ahead of the one that wrote the end
FIRST: Final = ""

# Replaying moves a run out of these states, so whoever deletes looks once more.
_EXPIRED: Final = """(
    ((r.status || '') IN ('SUCCEEDED', 'FAILED', 'CANCELLED') AND r.ended_at < :ended)
    OR ((r.status || '') = 'DEAD_LETTER' AND r.ended_at < :dead))
"""


@dataclass(frozen=True, slots=True)
class Expiry:
    """Which runs are deleted: those that ended before `ended`, of dead letters those before `dead`."""

    ended: datetime
    dead: datetime

    @property
    def params(self) -> dict[str, str]:
        """Give both as parameters of a statement."""
        return {"ended": write_instant(self.ended), "dead": write_instant(self.dead)}

    @property
    def bound(self) -> str:
        """Give an id before which all of them sort."""
        return first_id(max(self.ended, self.dead) + CLOCKS_APART)


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page of the walk: the runs on it that are expired, and its last id, None at the end."""

    expired: tuple[str, ...]
    last: str | None


WALK_RUNS: Final = sql(
    f"""
    SELECT r.id, CASE WHEN {_EXPIRED} THEN 1 ELSE 0 END AS expired FROM automation_runs r
    WHERE r.id > :after AND r.id < :bound ORDER BY r.id LIMIT :most
    """
)


def walk_runs(conn: Connection, expiry: Expiry, *, after: str, most: int) -> RunPage:
    """Give the next page of at most `most` runs with ids above `after`; FIRST begins the walk."""
    params = {**expiry.params, "after": after, "bound": expiry.bound, "most": most}
    rows = WALK_RUNS.run(conn, params).all()
    return RunPage(tuple(row.id for row in rows if row.expired), rows[-1].id if len(rows) == most else None)


COUNT_CHILDREN: Final = sql(
    """
    SELECT c.run_id, count(*) AS n FROM (
        SELECT l.run_id FROM automation_logs l JOIN {rows} ON l.run_id = x.id
        UNION ALL SELECT a.run_id FROM run_actions a JOIN {rows} ON a.run_id = x.id
        UNION ALL SELECT t.run_id FROM run_attempts t JOIN {rows} ON t.run_id = x.id) c
    GROUP BY c.run_id
    """,
    id="text",
)


def count_children(conn: Connection, run_ids: Iterable[str]) -> dict[str, int]:
    """Count the rows that belong to each of these runs; one that has none is left out."""
    return {row.run_id: row.n for row in COUNT_CHILDREN.run_set(conn, _rows(run_ids))}


LOCK_EXPIRED: Final = sql(
    f"""
    SELECT r.id FROM automation_runs r JOIN {{rows}} ON r.id = x.id
    WHERE {_EXPIRED} ORDER BY r.id {{skip_locked}}
    """,
    id="text",
)
DELETE_OF_RUNS: Final = {
    "automation_logs": sql(
        "DELETE FROM automation_logs WHERE run_id IN (SELECT x.id FROM {rows})", id="text"
    ),
    "run_actions": sql("DELETE FROM run_actions WHERE run_id IN (SELECT x.id FROM {rows})", id="text"),
    "run_attempts": sql("DELETE FROM run_attempts WHERE run_id IN (SELECT x.id FROM {rows})", id="text"),
    "automation_runs": sql("DELETE FROM automation_runs WHERE id IN (SELECT x.id FROM {rows})", id="text"),
}


def delete_runs(conn: Connection, run_ids: Iterable[str], expiry: Expiry) -> dict[str, int]:
    """Delete these runs with what belongs to them, as far as they are still expired; count it by table.

    One that somebody holds is left to the next pass.
    """
    locked = [row.id for row in LOCK_EXPIRED.run_set(conn, _rows(run_ids), **expiry.params)]
    if not locked:
        return {}
    return {table: delete.run_set(conn, _rows(locked)).rowcount for table, delete in DELETE_OF_RUNS.items()}


DELETE_LINES: Final = sql(
    """
    DELETE FROM automation_logs WHERE id IN (
        SELECT l.id FROM automation_logs l WHERE l.run_id = :run_id ORDER BY l.id LIMIT :most)
    """
)


def delete_lines(conn: Connection, run_id: str, expiry: Expiry, *, most: int) -> int:
    """Delete the first lines of one run's log, if the run is still expired: it has too many for one go."""
    if LOCK_EXPIRED.run_set(conn, _rows([run_id]), **expiry.params).first() is None:
        return 0
    return DELETE_LINES.run(conn, {"run_id": run_id, "most": most}).rowcount


OLDEST_EXPIRED: Final = sql(
    f"SELECT r.ended_at FROM automation_runs r WHERE r.id < :bound AND {_EXPIRED} ORDER BY r.id LIMIT 1"
)


def oldest_expired(conn: Connection, expiry: Expiry) -> datetime | None:
    """Tell when the first run ended that should be gone; None where there is none."""
    row = OLDEST_EXPIRED.run(conn, {**expiry.params, "bound": expiry.bound}).first()
    return read_instant(row.ended_at) if row else None


def _rows(run_ids: Iterable[str]) -> Sequence[dict[str, str]]:
    return [{"id": run_id} for run_id in run_ids]
