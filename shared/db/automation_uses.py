"""Which ACTIVE automations use an action type, for whoever checks whether it can be done."""

from typing import Final

from sqlalchemy import Connection

from shared.db.sql import sql

USING: Final = sql(
    """
    SELECT r.workspace_id, r.key FROM automations r
    WHERE r.status = 'ACTIVE' AND r.deleted_at IS NULL AND CAST(r.definition AS text) LIKE :pattern
    ORDER BY r.workspace_id, r.key LIMIT :most
    """
)


def automations_using(conn: Connection, action_type: str, *, most: int) -> list[str]:
    """Name automations that have such an action, `key (workspace)` each. All definitions are read for it."""
    rows = USING.run(conn, {"pattern": f'%"{action_type}"%', "most": most})
    return [f"{row.key} ({row.workspace_id})" for row in rows]
