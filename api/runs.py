"""Runs: in lists, one with its whole history; replayed, cancelled."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool
from sqlalchemy import Connection

from api.auth import needs
from api.errors import at_field, refused_at
from api.log_lines import LogOut
from api.paging import Listed, Page, PageAsked
from api.pending_models import PendingOut
from api.served import Served
from shared.db.log_reads import run_log
from shared.db.reads import RunDetail, RunSummary, read_run
from shared.db.run_lists import RunQuery, page_of_runs
from shared.errors import NotFound
from shared.masking import mask_tree
from shared.model.instants import Instant
from shared.model.moves import RunStatus
from shared.model.runs import RunSource
from shared.model.subjects import SubjectRef
from shared.model.triggers import TriggerType
from shared.services.backends import Caller
from shared.services.references import ever_automation_id
from shared.services.runs import Cancelled, Insistence, ReplayFrom, cancel, check_filters, replay
from shared.services.workspaces import Scope

ID_CHARS_MAX: Final = 100
SUBJECT_ID_MAX: Final = 200
LOG_LINES: Final = 500

router: Final = APIRouter(tags=["runs"])

Reader = Annotated[Caller, needs(Scope.RUNS_READ)]
Writer = Annotated[Caller, needs(Scope.RUNS_WRITE)]
RunId = Annotated[str, Path(max_length=ID_CHARS_MAX)]
Automation = Annotated[
    str | None, Query(max_length=ID_CHARS_MAX, description="Only of this one, by id or key.")
]
SubjectType = Annotated[
    str | None, Query(min_length=1, max_length=ID_CHARS_MAX, description="Goes with `subject_id`.")
]
SubjectId = Annotated[
    str | None, Query(min_length=1, max_length=SUBJECT_ID_MAX, description="Only about this subject.")
]


class RunOut(BaseModel):
    """A run. `why` says in a word or a line why it stands where it stands."""

    id: str
    automation_id: str | None
    automation_key: str | None
    automation_name: str | None = Field(description="The run's own name, where it has no automation.")
    trigger_type: str
    source: RunSource
    status: RunStatus
    why: str
    skip_reason: str | None
    error: Mapping[str, Any] | None = Field(description="That of the last attempt that failed.")
    stop_reason: str | None
    retry_count: int
    depth: int
    root_run_id: str
    entry_id: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    next_attempt_at: datetime | None

    @classmethod
    def of(cls, row: RunSummary) -> Self:
        """Show a run."""
        return cls.model_validate(_shown(row))


class ActionOut(BaseModel):
    """An action that succeeded."""

    position: int
    type: str
    output: Mapping[str, Any]
    started_at: datetime
    ended_at: datetime


class AttemptOut(BaseModel):
    """One attempt, and how it came out."""

    lease: int
    outcome: str
    code: str | None
    message: str | None
    position: int | None
    owner: str | None
    started_at: datetime | None
    ended_at: datetime


class RunDetailOut(RunOut):
    """A run with all that is on record: what it got and gave, actions, attempts, the first 500 lines."""

    pending_execution: PendingOut | None = Field(
        description="What waited for the run, of the source delayed."
    )
    input: Mapping[str, Any]
    output: Mapping[str, Any] | None
    actions: list[ActionOut]
    attempts: list[AttemptOut]
    logs: list[LogOut]


class ReplayIn(BaseModel):
    """Where a replayed run begins: at the action that failed, or with all of them once more."""

    model_config = ConfigDict(extra="forbid")

    from_start: StrictBool = False


class ReplayedOut(BaseModel):
    """Whether this request has put the run back; else it was going on already."""

    run_id: str
    replayed: bool


class CancelIn(BaseModel):
    """With `force` a run that is under way stops before its next action."""

    model_config = ConfigDict(extra="forbid")

    force: StrictBool = False


class CancelledOut(BaseModel):
    """How the run is cancelled: at once, or it is stopping."""

    run_id: str
    cancelled: Cancelled


@dataclass(frozen=True, slots=True)
class Which:
    """Which runs are asked for, but for the automation, which has to be looked up."""

    query: RunQuery
    automation: str | None


async def read_time(
    begin: Annotated[Instant | None, Query(alias="from", description="At this instant or later.")] = None,
    end: Annotated[Instant | None, Query(alias="to", description="Before this instant.")] = None,
) -> tuple[datetime | None, datetime | None]:
    """Read the stretch of time that is asked for."""
    return begin, end


async def read_subject(subject_type: SubjectType = None, subject_id: SubjectId = None) -> SubjectRef | None:
    """Read which subject is asked for. Raises Refused for half of one."""
    if subject_type is None and subject_id is None:
        return None
    if subject_type is None or subject_id is None:
        missing = "subject_type" if subject_type is None else "subject_id"
        raise refused_at(missing, "is missing: a subject has a type and an id")
    return SubjectRef(subject_type, subject_id)


async def read_standing(
    status: Annotated[RunStatus | None, Query(description="Only of this status.")] = None,
    fingerprint: Annotated[
        str | None,
        Query(
            max_length=ID_CHARS_MAX,
            description="Only the dead letters of this group.",
        ),
    ] = None,
    source: Annotated[RunSource | None, Query(description="Only made by this.")] = None,
) -> RunQuery:
    """Read how the runs stand that are asked for. Raises Refused for filters that exclude each other."""
    with at_field("fingerprint"):
        check_filters(status, fingerprint)
    return RunQuery("", 0, status, source=source, fingerprint=fingerprint)


async def read_which(
    standing: Annotated[RunQuery, Depends(read_standing)],
    time: Annotated[tuple[datetime | None, datetime | None], Depends(read_time)],
    subject: Annotated[SubjectRef | None, Depends(read_subject)],
    automation: Automation = None,
    trigger: Annotated[TriggerType | None, Query(description="Only started by this trigger.")] = None,
) -> Which:
    """Read which runs are asked for."""
    since, until = time
    query = replace(standing, trigger_type=trigger, subject=subject, since=since, until=until)
    return Which(query, automation)


Asked = Annotated[Which, Depends(read_which)]


@router.get("/v1/runs")
def list_some(caller: Reader, backends: Served, asked: Asked, page: Page) -> Listed[RunOut]:
    """List runs, newest first."""
    with backends.database.read() as conn:
        found = page_of_runs(conn, _query(conn, caller, asked, page))
    shown = [RunOut.of(row) for row in found.rows]
    return Listed(items=shown, next=page.cursor(found.before))


@router.get("/v1/runs/{run_id}")
def read_one(caller: Reader, backends: Served, run_id: RunId) -> RunDetailOut:
    """Show one run with its whole history."""
    with backends.database.read() as conn:
        detail = read_run(conn, caller.workspace_id, run_id)
        if detail is None:
            raise NotFound(f"there is no run {run_id!r} in workspace {caller.workspace_id!r}")
        lines = run_log(conn, caller.workspace_id, run_id, most=LOG_LINES)
    return _detail(detail, [LogOut.of(line) for line in lines])


@router.post("/v1/runs/{run_id}/replay")
def replay_one(
    caller: Writer, backends: Served, run_id: RunId, wanted: ReplayIn | None = None
) -> ReplayedOut:
    """Put a FAILED or DEAD_LETTER run back to PENDING; one that is going on stays as it is."""
    start = ReplayFrom.START if wanted is not None and wanted.from_start else ReplayFrom.FAILED_ACTION
    done = replay(backends, caller, [run_id], start)
    return ReplayedOut(run_id=run_id, replayed=run_id in done.replayed)


@router.post("/v1/runs/{run_id}/cancel")
def cancel_one(
    caller: Writer, backends: Served, run_id: RunId, wanted: CancelIn | None = None
) -> CancelledOut:
    """Cancel a run that has not begun; one that is under way only with `force`."""
    insistence = Insistence.FORCE if wanted is not None and wanted.force else Insistence.GENTLE
    return CancelledOut(run_id=run_id, cancelled=cancel(backends, caller, run_id, insistence))


def _query(conn: Connection, caller: Caller, asked: Which, page: PageAsked) -> RunQuery:
    automation_id = ever_automation_id(conn, caller.workspace_id, asked.automation)
    return replace(
        asked.query,
        workspace_id=caller.workspace_id,
        most=page.limit,
        automation_id=automation_id,
        before=page.after,
    )


def _shown(row: RunSummary) -> dict[str, Any]:
    shown: dict[str, Any] = mask_tree({**asdict(row), "why": row.why})
    return shown


def _detail(detail: RunDetail, lines: list[LogOut]) -> RunDetailOut:
    told = asdict(detail)
    told.pop("run")
    told.pop("pending")
    waited = None if detail.pending is None else PendingOut.of(detail.pending)
    more = {"pending_execution": waited, "logs": lines}
    return RunDetailOut.model_validate({**_shown(detail.run), **mask_tree(told), **more})
