"""What people do with the notices that reach them."""

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.notices import NoticeRow, mark_read
from shared.errors import NotFound
from shared.services.backends import Caller
from shared.time.clock import Clock


def read_notice(database: Database, clock: Clock, caller: Caller, notice_id: str) -> NoticeRow:
    """Note that a notice of the caller's workspace was read, and give it. Raises NotFound."""
    now = clock.now()

    def work(conn: Connection) -> NoticeRow:
        found = mark_read(conn, caller.workspace_id, notice_id, now=now)
        if found is None:
            raise NotFound(f"there is no notice {notice_id!r} in workspace {caller.workspace_id!r}")
        return found

    return database.transact(work)
