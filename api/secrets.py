"""`/v1/secrets`: what actions need to get in elsewhere. A value goes in and is never shown again."""

from datetime import datetime
from typing import Annotated, Final, Self

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from api.auth import needs
from api.errors import at_field
from api.paging import Listed, Page
from api.served import Configured, Served
from shared.db.secrets import SecretRow, list_secrets
from shared.db.sql import FIRST
from shared.rules.secret_names import NAME
from shared.services.backends import Caller
from shared.services.sealed import seal_to_write
from shared.services.secrets import VALUE_CHARS_MAX, SecretStore, drop_secret, set_secret
from shared.services.workspaces import Scope

router: Final = APIRouter(tags=["secrets"])

Admin = Annotated[Caller, needs(Scope.ADMIN)]
PATTERN: Final = f"^{NAME.pattern}$"


class SecretOut(BaseModel):
    """A secret, without its value."""

    name: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: SecretRow) -> Self:
        """Show a secret."""
        return cls(name=row.name, created_at=row.created_at, updated_at=row.updated_at)


class SecretIn(BaseModel):
    """A name, as in `{{ secrets.NAME }}`, and the value."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: str = Field(pattern=PATTERN, examples=["SHOP_TOKEN"])
    value: str = Field(min_length=1, max_length=VALUE_CHARS_MAX)


@router.get("/v1/secrets")
def list_all(caller: Admin, backends: Served, page: Page) -> Listed[SecretOut]:
    """List the secrets by name; no value is ever shown."""
    with backends.database.read() as conn:
        rows = list_secrets(conn, caller.workspace_id, after=page.after or FIRST, most=page.most)
    return page.cut(rows, SecretOut.of, lambda row: row.name)


@router.post(
    "/v1/secrets", status_code=201, responses={200: {"model": SecretOut, "description": "Replaced."}}
)
def set_one(
    caller: Admin, backends: Served, settings: Configured, wanted: SecretIn, response: Response
) -> SecretOut:
    """Set a secret; an earlier value is gone."""
    store = SecretStore(backends.database, backends.clock, seal_to_write(backends.database, settings))
    with at_field("name"):
        stored = set_secret(store, caller, wanted.name, wanted.value)
    response.status_code = 201 if stored.is_new else 200
    return SecretOut.of(stored.row)


@router.delete("/v1/secrets/{name}", status_code=204)
def delete_one(caller: Admin, backends: Served, name: Annotated[str, Path(max_length=100)]) -> None:
    """Delete a secret; actions that ask for it fail from now on."""
    drop_secret(backends.database, backends.clock, caller, name)
