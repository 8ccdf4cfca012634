"""A workspace gets another name; its id never changes."""

from collections.abc import Callable

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.persons_moves import lock_workspace
from shared.db.workspace_rows import WorkspaceRow, read_workspace, set_workspace_name
from shared.errors import ConfigError
from shared.model.names import check_name
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Caller
from shared.services.references import no_workspace
from shared.time.clock import Clock

Check = Callable[[WorkspaceRow], None]


def rename_workspace(database: Database, clock: Clock, caller: Caller, name: str, check: Check) -> None:
    """Give the caller's workspace a name, if `check` lets pass what it finds. The same name changes nothing.

    Raises NotFound, ConfigError for a name that says nothing or hides what it says, and what `check` raises.
    """
    try:
        check_name(name)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    now = clock.now()

    def work(conn: Connection) -> None:
        is_there = lock_workspace(conn, caller.workspace_id)
        found = read_workspace(conn, caller.workspace_id) if is_there else None
        if found is None:
            raise no_workspace(caller.workspace_id)
        check(found)
        if found.name != name:
            set_workspace_name(conn, found.id, name)
            told = Deed("workspace.renamed", found.id, {"name": found.name}, {"name": name})
            write_deed(conn, caller, told, now)

    database.transact(work)
