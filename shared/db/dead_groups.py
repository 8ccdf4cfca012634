"""Dead letters grouped by their trouble: counted from an index that knows of nothing but dead letters."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import sql
from shared.db.types import must_instant, read_json
from shared.rules.troubles import Trouble, trouble_of

NAMED: Final = 20  # automations of a group
COUNTED: Final = 100_000  # newest dead letters of a workspace, for its groups
LOOKED_AT: Final = 1_000  # newest dead letters of a group, for their automations
LAST: Final = "z"  # sorts behind every id

LIST: Final = sql(
    """
    WITH g AS MATERIALIZED (
        SELECT d.fingerprint, count(*) AS n, min(d.id) AS first_id, max(d.id) AS last_id
        FROM (SELECT r.fingerprint, r.id FROM automation_runs r
            WHERE r.workspace_id = :workspace_id AND r.status = 'DEAD_LETTER' AND r.status <> 'SUCCEEDED'
            ORDER BY r.id DESC LIMIT :counted) d
        GROUP BY d.fingerprint HAVING max(d.id) < :before ORDER BY max(d.id) DESC LIMIT :most)
    SELECT g.fingerprint, g.n, g.last_id, newest.automation_id, newest.title, newest.error,
        newest.ended_at AS last_at,
        COALESCE(oldest.ended_at, newest.ended_at) AS first_at,
        (SELECT {json_list}(d.automation_id) FROM (
            SELECT DISTINCT l.automation_id FROM (
                SELECT r.automation_id FROM automation_runs r
                WHERE r.workspace_id = :workspace_id AND r.status = 'DEAD_LETTER'
                    AND r.fingerprint = g.fingerprint
                ORDER BY r.id DESC LIMIT :looked_at) l
            ORDER BY l.automation_id LIMIT :named) d) AS automations
    FROM g JOIN automation_runs newest ON newest.id = g.last_id
    JOIN automation_runs oldest ON oldest.id = g.first_id
    ORDER BY g.last_id DESC
    """
)


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """The dead letters of one trouble, as its newest one tells it.

    `fingerprint` is None for those that have none. `automation_ids` are those of its newest dead letters, a
    few of them. `first_at` and `last_at` are when its oldest and its newest run ended.
    """

    fingerprint: str | None
    trouble: Trouble
    automation_ids: tuple[str, ...]
    count: int
    first_at: datetime
    last_at: datetime
    newest_run_id: str


def list_dead_groups(
    conn: Connection, workspace_id: str, *, most: int, before: str = LAST, counted: int = COUNTED
) -> list[DeadGroup]:
    """Give a workspace's groups, that with the newest run first, among so many of its newest dead letters.

    `before` is the newest run's id of the group that the last page ended with.
    """
    values = {
        "workspace_id": workspace_id,
        "most": most,
        "before": before,
        "counted": counted,
        "looked_at": LOOKED_AT,
        "named": NAMED,
    }
    return [_group(row) for row in LIST.run(conn, values)]


def _group(row: Row[Any]) -> DeadGroup:
    error = read_json(row.error) or {}
    automation_id = row.automation_id or ""
    return DeadGroup(
        fingerprint=row.fingerprint,
        trouble=trouble_of(error.get("code", ""), error.get("message", ""), automation_id or row.title or ""),
        automation_ids=tuple(each for each in read_json(row.automations) or [automation_id] if each),
        count=row.n,
        first_at=must_instant(row.first_at),
        last_at=must_instant(row.last_at),
        newest_run_id=row.last_id,
    )


COUNT_DEAD: Final = sql(
    """
    SELECT x.fingerprint, (
        SELECT count(*) FROM automation_runs r
        WHERE r.workspace_id = :workspace_id AND r.status = 'DEAD_LETTER' AND r.fingerprint = x.fingerprint
    ) AS n FROM {rows}
    """,
    fingerprint="text",
)


def count_dead(conn: Connection, workspace_id: str, fingerprints: Iterable[str]) -> dict[str, int]:
    """Count a workspace's dead letters that there are now of each of these troubles."""
    rows = [{"fingerprint": each} for each in fingerprints]
    return {row.fingerprint: row.n for row in COUNT_DEAD.run_set(conn, rows, workspace_id=workspace_id)}
