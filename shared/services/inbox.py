"""Inboxes as members read them: what they were told, and the marks of what they have read.

A mark is a reader's own and no change to the workspace, so it is no entry of the audit
(`docs/security.md`, "Audit").
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.inbox import InboxItem, InboxQuery, list_notices, mark_read, notice_ids, notice_owners
from shared.errors import NotFound
from shared.masking import mask_text
from shared.services.references import check_workspace, find_member
from shared.time.clock import Clock

BATCH: Final = 5_000


@dataclass(frozen=True, slots=True)
class Inbox:
    """The inbox of one member, by mail address, or without one those of the whole workspace."""

    workspace_id: str
    email: str | None = None


class Wanted(StrEnum):
    """Which notices are listed."""

    ALL = "all"
    UNREAD = "unread"


def list_inbox(database: Database, inbox: Inbox, wanted: Wanted, *, most: int) -> list[InboxItem]:
    """Give the newest notices, newest first, as they may be shown.

    Raises NotFound without the workspace or the member.
    """
    with database.read() as conn:
        query = InboxQuery(inbox.workspace_id, most, _member_id(conn, inbox), wanted is Wanted.UNREAD)
        items = list_notices(conn, query)
    return [replace(item, title=mask_text(item.title), body=mask_text(item.body)) for item in items]


def mark_notices(database: Database, clock: Clock, inbox: Inbox, ids: Sequence[str]) -> int:
    """Mark these notices of an inbox as read; tell how many were not. A second call changes nothing.

    Raises NotFound without the workspace or the member, and for an id that the inbox has not; then none is
    marked.
    """
    now = clock.now()

    def work(conn: Connection) -> int:
        member_id = _member_id(conn, inbox)
        owners = notice_owners(conn, inbox.workspace_id, ids)
        for each in ids:
            if each not in owners or member_id not in (None, owners[each]):
                whose = f"workspace {inbox.workspace_id!r}" if inbox.email is None else inbox.email
                raise NotFound(f"there is no notice {each!r} in the inbox of {whose}")
        return mark_read(conn, ids, now=now)

    return database.transact(work)


def mark_all(database: Database, clock: Clock, inbox: Inbox) -> int:
    """Mark all of an inbox as read, a few thousand in a transaction; tell how many were not.

    A second call goes on where the first one died. Raises NotFound without the workspace or the member.
    """
    with database.read() as conn:
        member_id = _member_id(conn, inbox)
    query = InboxQuery(inbox.workspace_id, BATCH, member_id, unread=True)
    marked = 0
    while True:
        with database.read() as conn:
            page = notice_ids(conn, query)
        marked += _mark_page(database, clock, page)
        if len(page) < BATCH:
            return marked
        query = replace(query, after=page[-1])


def _mark_page(database: Database, clock: Clock, page: Sequence[str]) -> int:
    now = clock.now()
    return database.transact(lambda conn: mark_read(conn, page, now=now))


def _member_id(conn: Connection, inbox: Inbox) -> str | None:
    if inbox.email is None:
        check_workspace(conn, inbox.workspace_id)
        return None
    return find_member(conn, inbox.workspace_id, inbox.email).id
