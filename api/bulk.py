"""Bulk operations: a preview that counts, a confirmation, progress, an end midway; dead letters in groups."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictBool, field_validator

from api.auth import needs
from api.paging import Listed, Page
from api.served import Served
from shared.db.bulk import LAST, BulkOperation, list_operations
from shared.db.dead_groups import DeadGroup, list_dead_groups
from shared.model.bulk import BulkFilter, BulkKind, BulkStatus, BulkWish, check_filter
from shared.services.backends import Caller
from shared.services.bulk import cancel_bulk, confirm, document_of, preview, show_bulk, start_bulk
from shared.services.workspaces import Scope

router: Final = APIRouter(tags=["many runs"])

Reader = Annotated[Caller, needs(Scope.RUNS_READ)]
Writer = Annotated[Caller, needs(Scope.RUNS_WRITE)]


class OperationOut(BaseModel):
    """A bulk operation. `skipped` counts, by reason, the runs that were left as they are."""

    id: str
    kind: BulkKind
    status: BulkStatus
    filter: Mapping[str, Any]
    from_start: bool
    total: int = Field(description="How many runs the preview counted; once it is DONE, how many there were.")
    more: bool = Field(description="The preview found more than `total`.")
    done: int
    skipped: Mapping[str, int]
    created_by: str
    created_at: datetime
    confirmed_by: str | None
    confirmed_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, operation: BulkOperation) -> Self:
        """Show an operation."""
        return cls.model_validate(document_of(operation))


class ReplayIn(BaseModel):
    """Which runs to replay. With `confirm` it begins at once, else it waits to be confirmed."""

    model_config = ConfigDict(extra="forbid")

    filter: BulkFilter
    from_start: StrictBool = False
    confirm: StrictBool = False

    @field_validator("filter")
    @classmethod
    def _check_filter(cls, wanted: BulkFilter) -> BulkFilter:
        return check_filter(BulkKind.REPLAY, wanted)


class DeadGroupOut(BaseModel):
    """The dead letters of one trouble, as the newest of them tells it."""

    fingerprint: str | None = Field(description="What a filter names it by.")
    code: str
    target: str = Field(description="The host that is in trouble, or the automation's id.")
    message: str
    automation_ids: list[str] = Field(description="Those of its newest dead letters, 20 at most.")
    count: int
    first_at: datetime
    last_at: datetime
    run_id: str = Field(description="Its newest run.")

    @classmethod
    def of(cls, group: DeadGroup) -> Self:
        """Show a group."""
        return cls(
            fingerprint=group.fingerprint,
            code=group.trouble.code,
            target=group.trouble.target,
            message=group.trouble.message,
            automation_ids=list(group.automation_ids),
            count=group.count,
            first_at=group.first_at,
            last_at=group.last_at,
            run_id=group.newest_run_id,
        )


@router.get("/v1/dead-letters")
def list_dead_letters(caller: Reader, backends: Served, page: Page) -> Listed[DeadGroupOut]:
    """List the dead letters that there are now in groups, that with the newest run first."""
    with backends.database.read() as conn:
        rows = list_dead_groups(conn, caller.workspace_id, most=page.most, before=page.after or LAST)
    return page.cut(rows, DeadGroupOut.of, lambda group: group.newest_run_id)


@router.post("/v1/bulk", status_code=201)
def make_preview(caller: Writer, backends: Served, wish: BulkWish) -> OperationOut:
    """Count the runs that are meant; nothing is done to them until the operation is confirmed."""
    return OperationOut.of(preview(backends, caller, wish))


@router.get("/v1/bulk")
def list_bulk(caller: Reader, backends: Served, page: Page) -> Listed[OperationOut]:
    """List operations, newest first."""
    with backends.database.read() as conn:
        rows = list_operations(conn, caller.workspace_id, most=page.most, before=page.after or LAST)
    return page.cut(rows, OperationOut.of, lambda operation: operation.id)


@router.get("/v1/bulk/{operation_id}")
def read_bulk(caller: Reader, backends: Served, operation_id: str) -> OperationOut:
    """Show how far an operation has come."""
    with backends.database.read() as conn:
        return OperationOut.of(show_bulk(conn, caller.workspace_id, operation_id))


@router.post("/v1/bulk/{operation_id}/confirm")
def confirm_bulk(caller: Writer, backends: Served, operation_id: str) -> OperationOut:
    """Let an operation begin. A second confirmation changes nothing."""
    return OperationOut.of(confirm(backends, caller, operation_id))


@router.post("/v1/bulk/{operation_id}/cancel")
def cancel_midway(caller: Writer, backends: Served, operation_id: str) -> OperationOut:
    """End an operation where it stands: the runs that had no turn yet are left as they are."""
    return OperationOut.of(cancel_bulk(backends, caller, operation_id))


@router.post("/v1/runs/replay", status_code=201)
def replay_by_filter(caller: Writer, backends: Served, wanted: ReplayIn) -> OperationOut:
    """Make an operation that replays the runs of a filter; an empty one means all dead letters."""
    wish = BulkWish(kind=BulkKind.REPLAY, filter=wanted.filter, from_start=wanted.from_start)
    make = start_bulk if wanted.confirm else preview
    return OperationOut.of(make(backends, caller, wish))
