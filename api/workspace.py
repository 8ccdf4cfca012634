"""`/v1/settings`: what the workspace says of itself."""

from datetime import datetime
from typing import Annotated, Final, Self

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from api.auth import needs
from api.errors import at_field
from api.etags import IfMatch, check_match, make_etag
from api.served import Served
from shared.db.workspace_rows import WorkspaceRow, read_workspace
from shared.model.names import NAME_MAX
from shared.services.backends import Backends, Caller
from shared.services.references import no_workspace
from shared.services.renaming import rename_workspace
from shared.services.workspaces import Scope

router: Final = APIRouter(tags=["settings"])

Admin = Annotated[Caller, needs(Scope.ADMIN)]


class SettingsOut(BaseModel):
    """The workspace: its id, which never changes, and the name that people give to it."""

    workspace_id: str
    name: str
    created_at: datetime

    @classmethod
    def of(cls, row: WorkspaceRow) -> Self:
        """Show a workspace."""
        return cls(workspace_id=row.id, name=row.name, created_at=row.created_at)


class SettingsIn(BaseModel):
    """What is to change; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(default=None, min_length=1, max_length=NAME_MAX, examples=["The shop"])


@router.get("/v1/settings")
def read_settings(caller: Admin, backends: Served, response: Response) -> SettingsOut:
    """Show the settings of the workspace. `ETag` names their state."""
    row = _read(backends, caller)
    response.headers["ETag"] = _etag(row)
    return SettingsOut.of(row)


@router.patch("/v1/settings")
def change_settings(
    caller: Admin, backends: Served, wanted: SettingsIn, response: Response, if_match: IfMatch = None
) -> SettingsOut:
    """Change settings; with `If-Match` only if nobody else did meanwhile."""

    def check(row: WorkspaceRow) -> None:
        check_match(if_match, _etag(row))

    if wanted.name is None:
        check(_read(backends, caller))
    else:
        with at_field("name"):
            rename_workspace(backends.database, backends.clock, caller, wanted.name, check)
    row = _read(backends, caller)
    response.headers["ETag"] = _etag(row)
    return SettingsOut.of(row)


def _etag(row: WorkspaceRow) -> str:
    return make_etag(row.id, row.name)


def _read(backends: Backends, caller: Caller) -> WorkspaceRow:
    with backends.database.read() as conn:
        row = read_workspace(conn, caller.workspace_id)
    if row is None:
        raise no_workspace(caller.workspace_id)
    return row
