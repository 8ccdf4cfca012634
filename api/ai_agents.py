"""`/v2/ai_agents`: AI agents with their idle rules (docs/idle-sequences.md)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

from fastapi import APIRouter, Body, Path, Response

from api.ai_agents_models import (
    CHANGE_EXAMPLES,
    INVALID_STEPS,
    NEW_EXAMPLES,
    AgentChange,
    AgentIn,
    AgentOut,
    AgentSummary,
)
from api.auth import needs
from api.errors import Refused, refused_at
from api.etags import Meaning, document_etag
from api.paging import Listed, Page
from api.served import Served
from shared.db.ai_agents import AgentRow, list_agents
from shared.db.sql import FIRST
from shared.errors import ConfigError
from shared.rules.idle_rules import MalformedIdleRule
from shared.services.ai_agents import (
    AgentEdit,
    StepsNotEnabled,
    drop_agent,
    edit_agent,
    get_agent,
    make_agent,
)
from shared.services.backends import Caller
from shared.services.workspaces import Scope

ID_CHARS_MAX: Final = 100

router: Final = APIRouter(tags=["AI agents"])

Reader = Annotated[Caller, needs(Scope.AGENTS_READ)]
Writer = Annotated[Caller, needs(Scope.AGENTS_WRITE)]
New = Annotated[AgentIn, Body(openapi_examples=NEW_EXAMPLES)]
Change = Annotated[AgentChange, Body(openapi_examples=CHANGE_EXAMPLES)]
AgentId = Annotated[str, Path(max_length=ID_CHARS_MAX)]


@router.get("/v2/ai_agents")
def list_some(caller: Reader, backends: Served, page: Page) -> Listed[AgentOut]:
    """List AI agents by id, as they were stored."""
    return page.cut(_rows(caller, backends, page), AgentOut.of, lambda row: row.id)


@router.get("/v2/ai_agents/summary")
def list_summaries(caller: Reader, backends: Served, page: Page) -> Listed[AgentSummary]:
    """List AI agents by id, with nothing of the profile but the idle rule."""
    return page.cut(_rows(caller, backends, page), AgentSummary.of, lambda row: row.id)


@router.get("/v2/ai_agents/{agent_id}")
def read_one(caller: Reader, backends: Served, agent_id: AgentId, response: Response) -> AgentOut:
    """Show an AI agent. `ETag` names its state."""
    with backends.database.read() as conn:
        return _tagged(get_agent(conn, caller, agent_id), response)


@router.post("/v2/ai_agents", status_code=201, responses=INVALID_STEPS)
def make_one(caller: Writer, backends: Served, wanted: New, response: Response) -> AgentOut:
    """Make an AI agent; `id` is the `agentId` that its messages carry."""
    with _told():
        row = make_agent(backends.database, backends.clock, caller, wanted.keys(), wanted.id)
    response.headers["Location"] = f"/v2/ai_agents/{row.id}"
    return _tagged(row, response)


@router.patch("/v2/ai_agents/{agent_id}", responses=INVALID_STEPS)
def edit_one(caller: Writer, backends: Served, agent_id: AgentId, wanted: Change, meant: Meaning) -> AgentOut:
    """Give an AI agent another name, or another profile, which is replaced whole.

    What fires from now on goes by it. With `If-Match` only if nobody else changed it meanwhile.
    """
    with _told():
        edit = AgentEdit(wanted.keys(), meant.checking(_etag))
        row = edit_agent(backends.database, backends.clock, caller, agent_id, edit)
    meant.tag(_etag(row))
    return AgentOut.of(row)


@router.delete("/v2/ai_agents/{agent_id}", status_code=204)
def delete_one(caller: Writer, backends: Served, agent_id: AgentId, meant: Meaning) -> None:
    """Delete an AI agent: no step of it fires any more. Its id stays taken."""
    drop_agent(backends.database, backends.clock, caller, agent_id, meant.checking(_etag))


@contextmanager
def _told() -> Iterator[None]:
    """Tell callers what is wrong with steps, under the codes that they know."""
    try:
        yield
    except MalformedIdleRule as fault:
        details = {"index": fault.index, "field": fault.field}
        raise Refused(422, str(fault), **details).coded("IDLE_RULE_STEPS_INVALID") from fault
    except StepsNotEnabled as fault:
        raise Refused(422, str(fault), field="steps").coded("IDLE_RULE_STEPS_NOT_ENABLED") from fault
    except ConfigError as fault:
        raise refused_at("parameters", str(fault)) from fault


def _rows(caller: Caller, backends: Served, page: Page) -> list[AgentRow]:
    with backends.database.read() as conn:
        return list_agents(conn, caller.workspace_id, after=page.after or FIRST, most=page.most)


def _tagged(row: AgentRow, response: Response) -> AgentOut:
    response.headers["ETag"] = _etag(row)
    return AgentOut.of(row)


def _etag(row: AgentRow) -> str:
    return document_etag([row.id, row.name, row.parameters, row.updated_at])
