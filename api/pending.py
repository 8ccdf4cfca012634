"""Pending executions: what waits before it acts, what became of it, and cancelling it (docs/delayed.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Depends, Path, Query
from sqlalchemy import Connection

from api.auth import needs
from api.errors import at_field
from api.paging import Listed, Page, PageAsked, no_cursor
from api.pending_models import PendingOut
from api.runs import ID_CHARS_MAX, Automation, read_subject
from api.served import Served
from shared.db.pending_lists import PendingQuery, Place, page_of_pending
from shared.db.pending_reads import PendingDetail
from shared.masking import mask_tree
from shared.model.event_fields import parse_instant
from shared.model.pending import PendingSkip, PendingStatus
from shared.model.subjects import SubjectRef
from shared.services.backends import Caller
from shared.services.pending import cancel_waiting, check_filters, get_pending
from shared.services.references import ever_automation_id
from shared.services.workspaces import Scope

router: Final = APIRouter(tags=["pending executions"])

Reader = Annotated[Caller, needs(Scope.RUNS_READ)]
Writer = Annotated[Caller, needs(Scope.RUNS_WRITE)]
PendingId = Annotated[str, Path(max_length=ID_CHARS_MAX)]


class PendingDetailOut(PendingOut):
    """One pending execution with the event that armed it, masked."""

    trigger_event: Mapping[str, Any]

    @classmethod
    def whole(cls, detail: PendingDetail) -> Self:
        """Show one with its event."""
        shown = PendingOut.of(detail.row).model_dump()
        return cls(**shown, trigger_event=mask_tree(detail.trigger_event))


@dataclass(frozen=True, slots=True)
class Which:
    """Which are asked for."""

    subject: Annotated[SubjectRef | None, Depends(read_subject)]
    automation: Automation = None
    status: Annotated[PendingStatus | None, Query(description="Only of this status.")] = None
    skip_reason: Annotated[PendingSkip | None, Query(description="Only skipped for this reason.")] = None


@router.get("/v1/pending-executions")
def list_some(
    caller: Reader, backends: Served, asked: Annotated[Which, Depends()], page: Page
) -> Listed[PendingOut]:
    """List pending executions, newest first; with `status=pending` what is due first."""
    with backends.database.read() as conn:
        found = page_of_pending(conn, _query(conn, caller, asked, page))
    shown = [PendingOut.of(row) for row in found.rows]
    return Listed(items=shown, next=page.cursor(None if found.after is None else _key(found.after)))


@router.get("/v1/pending-executions/{pending_id}")
def read_one(caller: Reader, backends: Served, pending_id: PendingId) -> PendingDetailOut:
    """Show one, with the event that armed it."""
    with backends.database.read() as conn:
        return PendingDetailOut.whole(get_pending(conn, caller, pending_id))


@router.post("/v1/pending-executions/{pending_id}/cancel")
def cancel_one(caller: Writer, backends: Served, pending_id: PendingId) -> PendingOut:
    """Keep one that waits from firing. Its episode is spent: only the next one arms anew."""
    return PendingOut.of(cancel_waiting(backends, caller, pending_id))


def _query(conn: Connection, caller: Caller, asked: Which, page: PageAsked) -> PendingQuery:
    with at_field("skip_reason"):
        check_filters(asked.status, asked.skip_reason)
    automation_id = ever_automation_id(conn, caller.workspace_id, asked.automation)
    return PendingQuery(
        workspace_id=caller.workspace_id,
        most=page.limit,
        status=asked.status,
        skip_reason=asked.skip_reason,
        automation_id=automation_id,
        subject=asked.subject,
        after=None if page.after is None else _read_place(page.after, asked.status),
    )


def _key(place: Place) -> str:
    return f"{place.due_at.isoformat() if place.due_at else ''}|{place.id}"


def _read_place(key: str, status: PendingStatus | None) -> Place:
    """Read where the last page ended. Raises Refused for a cursor of another list."""
    due_at, bar, id_ = key.partition("|")
    if not bar or bool(due_at) is not (status is PendingStatus.PENDING):
        raise no_cursor()
    try:
        return Place(id_, parse_instant(due_at) if due_at else None)
    except ValueError as error:
        raise no_cursor() from error
