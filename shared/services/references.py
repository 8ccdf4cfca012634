"""Which automation a person means by a key or an id."""

from sqlalchemy import Connection

from shared.db.automations import AutomationRow, find_by_reference, lock_by_key
from shared.errors import NotFound


def find_automation(conn: Connection, workspace_id: str, reference: str) -> AutomationRow:
    """Give a living automation by its key, else by its id. Raises NotFound."""
    row = find_by_reference(conn, workspace_id, reference)
    if row is None:
        raise NotFound(f"there is no automation {reference!r} in workspace {workspace_id!r}")
    return row


def lock_automation(conn: Connection, workspace_id: str, reference: str) -> AutomationRow:
    """Give a living automation as `find_automation` does, locked until the transaction ends."""
    found = find_automation(conn, workspace_id, reference)
    locked = lock_by_key(conn, workspace_id, found.key)
    return locked or find_automation(conn, workspace_id, reference)
