"""`/v1/flags`: what the workspace has turned on or off by name."""

from datetime import datetime
from typing import Annotated, Final, Self

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from api.auth import needs
from api.paging import Listed, Page
from api.served import Served
from shared.db.flags import Flag, list_flags
from shared.db.sql import FIRST
from shared.model.flag_states import FlagState, in_effect
from shared.services.backends import Caller
from shared.services.flags import NAME, installation_flags, set_flag
from shared.services.workspaces import Scope

router: Final = APIRouter(tags=["flags"])

Admin = Annotated[Caller, needs(Scope.ADMIN)]


class FlagOut(BaseModel):
    """A flag that was set."""

    name: str
    state: FlagState
    installation: FlagState | None = Field(
        description="What the whole installation says; null if it was never asked, or has no say."
    )
    effective: FlagState = Field(description="What both come to.")
    updated_at: datetime

    @classmethod
    def of(cls, flag: Flag, installation: FlagState | None) -> Self:
        """Show a flag beside what the whole installation says of it."""
        return cls(
            name=flag.name,
            state=flag.state,
            installation=installation,
            effective=in_effect(flag.name, flag.state, installation) or flag.state,
            updated_at=flag.updated_at,
        )


class FlagIn(BaseModel):
    """A flag, and what it is to say."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=f"^{NAME.pattern}$", examples=["human-lock"])
    state: FlagState


@router.get("/v1/flags")
def list_all(caller: Admin, backends: Served, page: Page) -> Listed[FlagOut]:
    """List the flags that were set, by name."""
    with backends.database.read() as conn:
        rows = list_flags(conn, caller.workspace_id, after=page.after or FIRST, most=page.most)
        everywhere = installation_flags(conn)
    return page.cut(rows, lambda row: FlagOut.of(row, everywhere.get(row.name)), lambda row: row.name)


@router.post("/v1/flags")
def set_one(caller: Admin, backends: Served, wanted: FlagIn) -> FlagOut:
    """Turn a flag on or off, for this workspace alone."""
    done = set_flag(backends.database, backends.clock, caller, (wanted.name, wanted.state))
    with backends.database.read() as conn:
        everywhere = installation_flags(conn)
    return FlagOut.of(done.flag, everywhere.get(wanted.name))
