"""What a person means by a name: a workspace, a member by mail address, an automation by key or id."""

import shlex
from collections.abc import Sequence

from sqlalchemy import Connection

from shared.db.automations import AutomationRow, find_by_reference, find_ever_by_reference, lock_by_key
from shared.db.members import MemberRow, list_members
from shared.db.people import workspace_name
from shared.errors import NotFound


def check_workspace(conn: Connection, workspace_id: str) -> None:
    """Raise NotFound unless there is such a workspace."""
    if workspace_name(conn, workspace_id) is None:
        raise no_workspace(workspace_id)


def no_workspace(workspace_id: str) -> NotFound:
    """Make the error that says that a workspace is unknown, and how to make it."""
    name = shlex.quote(workspace_id) if workspace_id else ""
    fix = f"make it with: knockon init {name}".rstrip()
    return NotFound(f"there is no workspace {workspace_id!r}", fix=fix)


def find_member(conn: Connection, workspace_id: str, email: str) -> MemberRow:
    """Give a member by the mail address, in whatever case. Raises NotFound without it or the workspace."""
    check_workspace(conn, workspace_id)
    return pick_member(list_members(conn, workspace_id), workspace_id, email)


def pick_member(members: Sequence[MemberRow], workspace_id: str, email: str) -> MemberRow:
    """Give the one of a workspace's members who has this address, in whatever case. Raises NotFound."""
    found = next((member for member in members if member.email.lower() == email.lower()), None)
    if found is None:
        raise NotFound(f"there is no member {email!r} in workspace {workspace_id!r}")
    return found


def find_automation(conn: Connection, workspace_id: str, reference: str) -> AutomationRow:
    """Give a living automation by its key, else by its id. Raises NotFound."""
    row = find_by_reference(conn, workspace_id, reference)
    if row is None:
        raise _no_automation(conn, workspace_id, reference)
    return row


def find_ever_automation(conn: Connection, workspace_id: str, reference: str) -> AutomationRow:
    """Give an automation as `find_automation` does, else the one of this name that was deleted last."""
    row = find_ever_by_reference(conn, workspace_id, reference)
    if row is None:
        raise _no_automation(conn, workspace_id, reference)
    return row


def ever_automation_id(conn: Connection, workspace_id: str, reference: str | None) -> str | None:
    """Give the id of an automation as `find_ever_automation` finds it; None where none is asked for."""
    return None if reference is None else find_ever_automation(conn, workspace_id, reference).id


def lock_automation(conn: Connection, workspace_id: str, reference: str) -> AutomationRow:
    """Give a living automation as `find_automation` does, locked until the transaction ends."""
    found = find_automation(conn, workspace_id, reference)
    locked = lock_by_key(conn, workspace_id, found.key)
    return locked or find_automation(conn, workspace_id, reference)


def _no_automation(conn: Connection, workspace_id: str, reference: str) -> NotFound:
    check_workspace(conn, workspace_id)
    return NotFound(f"there is no automation {reference!r} in workspace {workspace_id!r}")
