"""`/v1/notifications`: the inboxes of the workspace's members, newest first."""

from datetime import datetime
from typing import Annotated, Final, Self

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from api.auth import needs
from api.paging import Listed, Page
from api.served import Served
from shared.db.notices import NoticeQuery, NoticeRow, page_notices
from shared.services.backends import Caller
from shared.services.notices import read_notice
from shared.services.workspaces import Scope

router: Final = APIRouter(tags=["notifications"])

Admin = Annotated[Caller, needs(Scope.ADMIN)]
ToMember = Annotated[str | None, Query(max_length=100, description="Only to this member, by id.")]


class NoticeOut(BaseModel):
    """A notice to one member."""

    id: str
    member_id: str
    title: str
    body: str
    resource_type: str
    resource_id: str
    created_at: datetime
    read_at: datetime | None

    @classmethod
    def of(cls, row: NoticeRow) -> Self:
        """Show a notice."""
        return cls(
            id=row.id,
            member_id=row.member_id,
            title=row.title,
            body=row.body,
            resource_type=row.resource_type,
            resource_id=row.resource_id,
            created_at=row.created_at,
            read_at=row.read_at,
        )


@router.get("/v1/notifications")
def list_all(caller: Admin, backends: Served, page: Page, member: ToMember = None) -> Listed[NoticeOut]:
    """List the notices of the workspace, newest first."""
    query = NoticeQuery(caller.workspace_id, page.most, member_id=member, before=page.after)
    with backends.database.read() as conn:
        rows = page_notices(conn, query)
    return page.cut(rows, NoticeOut.of, lambda row: row.id)


@router.post("/v1/notifications/{notice_id}/read")
def mark_one_read(
    caller: Admin, backends: Served, notice_id: Annotated[str, Path(max_length=100)]
) -> NoticeOut:
    """Note that a notice was read; a second call changes nothing."""
    return NoticeOut.of(read_notice(backends.database, backends.clock, caller, notice_id))
