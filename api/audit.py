"""`/v1/audit`: who did what in the workspace, newest first."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from api.auth import needs
from api.paging import Listed, Page
from api.served import Served
from shared.db.audit_reads import AuditQuery, AuditRow, list_audit
from shared.masking import mask_tree
from shared.model.instants import Instant
from shared.services.backends import Caller
from shared.services.workspaces import Scope

router: Final = APIRouter(tags=["audit"])

Admin = Annotated[Caller, needs(Scope.ADMIN)]


class AuditOut(BaseModel):
    """One deed: who, what, to which thing, and what that was before and after."""

    id: str
    at: datetime
    actor: str
    action: str
    resource_type: str
    resource_id: str
    detail: Mapping[str, Any] | None

    @classmethod
    def of(cls, row: AuditRow) -> Self:
        """Show an entry."""
        return cls(
            id=row.id,
            at=row.at,
            actor=row.actor,
            action=row.action,
            resource_type=row.resource_type,
            resource_id=row.resource_id,
            detail=mask_tree(row.detail),
        )


@dataclass(frozen=True, slots=True)
class About:
    """Which deeds are asked for."""

    resource_type: Annotated[str | None, Query(max_length=50, description="Of this kind of thing.")] = None
    resource_id: Annotated[str | None, Query(max_length=500, description="Of this thing.")] = None
    since: Annotated[Instant | None, Query(description="From this instant on.")] = None


@router.get("/v1/audit")
def list_all(
    caller: Admin, backends: Served, page: Page, about: Annotated[About, Depends()]
) -> Listed[AuditOut]:
    """List what was done, newest first."""
    query = AuditQuery(
        caller.workspace_id,
        page.most,
        resource_type=about.resource_type,
        resource_id=about.resource_id,
        since=about.since,
        before=page.after,
    )
    with backends.database.read() as conn:
        rows = list_audit(conn, query)
    return page.cut(rows, AuditOut.of, lambda row: row.id)
