"""`/v1/sequences`: steps of idle sequences that wait, what became of them, and disarming one."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Final, Self

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field

from api.auth import needs
from api.paging import Listed, Page, PageAsked, no_cursor
from api.served import Served
from shared.db.idle_lists import (
    IdlePlace,
    IdleQuery,
    IdleStepShown,
    find_sequence,
    page_of_idle_steps,
)
from shared.model.event_fields import parse_instant
from shared.model.idle_steps import IdleAction, IdleRuleKind, IdleStatus, IdleStop
from shared.model.instants import Instant
from shared.services.backends import Caller
from shared.services.sequences import disarm, get_step
from shared.services.sequences_shown import step_document
from shared.services.workspaces import Scope

ID_CHARS_MAX: Final = 200

router: Final = APIRouter(tags=["idle sequences"])

Reader = Annotated[Caller, needs(Scope.RUNS_READ)]
Writer = Annotated[Caller, needs(Scope.RUNS_WRITE)]
StepId = Annotated[str, Path(max_length=ID_CHARS_MAX)]


class StepOut(BaseModel):
    """A step of an idle sequence, of an AI agent's rule or a channel's."""

    id: str
    sequence_id: str = Field(description="The id of the first step of the sequence.")
    conversation_id: str
    rule: IdleRuleKind
    name: str | None = Field(description="Whose rule it is: the agent's name, or the channel's.")
    agent_id: str | None
    channel_id: str | None
    step_index: int = Field(description="Counted from 0.")
    step_count: int
    action: IdleAction = Field(description="As it was when the step was armed.")
    words: str = Field(examples=["step 2 of 3: follow_up, due 2026-03-01T12:10:00Z"])
    anchor_message_id: str = Field(description="The message that its clock runs from.")
    due_at: datetime
    status: IdleStatus
    reason: IdleStop | None = Field(description="Why it did nothing.")
    run_id: str | None
    claimed_at: datetime | None
    ended_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, step: IdleStepShown) -> Self:
        """Show one."""
        return cls.model_validate(step_document(step))


class StepDetailOut(StepOut):
    """A step with its whole sequence."""

    steps: list[StepOut] = Field(description="All steps of its sequence, the first one first.")


@dataclass(frozen=True, slots=True)
class Which:
    """Which are asked for."""

    status: Annotated[IdleStatus | None, Query(description="Only of this status.")] = None
    reason: Annotated[IdleStop | None, Query(description="Only stopped for this reason.")] = None
    conversation: Annotated[
        str | None, Query(max_length=ID_CHARS_MAX, description="Only of this conversation, by id.")
    ] = None
    agent: Annotated[
        str | None, Query(max_length=ID_CHARS_MAX, description="Only of this AI agent, by id.")
    ] = None
    due_before: Annotated[Instant | None, Query(description="Only due before this instant.")] = None

    def query(self, caller: Caller, page: PageAsked) -> IdleQuery:
        """Give the query of a page."""
        query = IdleQuery(
            workspace_id=caller.workspace_id,
            most=page.limit,
            status=self.status,
            reason=self.reason,
            conversation_id=self.conversation,
            agent_id=self.agent,
            due_before=self.due_before,
        )
        return query if page.after is None else replace(query, after=_read_place(page.after, query))


@router.get("/v1/sequences")
def list_some(
    caller: Reader, backends: Served, asked: Annotated[Which, Depends()], page: Page
) -> Listed[StepOut]:
    """List steps of idle sequences, newest first; with `status=pending` what is due first."""
    with backends.database.read() as conn:
        found = page_of_idle_steps(conn, asked.query(caller, page))
    shown = [StepOut.of(step) for step in found.rows]
    return Listed(items=shown, next=page.cursor(None if found.after is None else _key(found.after)))


@router.get("/v1/sequences/{step_id}")
def read_one(caller: Reader, backends: Served, step_id: StepId) -> StepDetailOut:
    """Show a step with its whole sequence; the id of a sequence is that of its first step."""
    with backends.database.read() as conn:
        step = get_step(conn, caller, step_id)
        steps = [StepOut.of(each) for each in find_sequence(conn, step.row)]
    return StepDetailOut(**step_document(step), steps=steps)


@router.post("/v1/sequences/{step_id}/disarm")
def disarm_one(caller: Writer, backends: Served, step_id: StepId) -> StepOut:
    """Keep a step that waits from firing, and all that would follow it."""
    return StepOut.of(disarm(backends.database, backends.clock, caller, step_id))


def _key(place: IdlePlace) -> str:
    return f"{place.due_at.isoformat() if place.due_at else ''}|{place.id}"


def _read_place(key: str, query: IdleQuery) -> IdlePlace:
    """Read where the last page ended. Raises Refused for a cursor of another list."""
    due_at, bar, id_ = key.partition("|")
    if not bar or bool(due_at) is not query.is_by_due:
        raise no_cursor()
    try:
        return IdlePlace(id_, parse_instant(due_at) if due_at else None)
    except ValueError as error:
        raise no_cursor() from error
