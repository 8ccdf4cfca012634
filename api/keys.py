"""`/v1/api-keys`: the keys of the workspace. A key is shown once, when it is made."""

from datetime import datetime
from typing import Annotated, Final, Self

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel, ConfigDict, Field

from api.auth import needs
from api.errors import at_field
from api.paging import Listed, Page
from api.served import Served, tell_once
from shared.db.api_keys import KeySummary, find_key_by_id, list_api_keys
from shared.db.sql import FIRST
from shared.errors import NotFound
from shared.model.names import NAME_MAX
from shared.services.backends import Caller
from shared.services.workspaces import Scope, create_key, revoke_key

router: Final = APIRouter(tags=["api keys"])

Admin = Annotated[Caller, needs(Scope.ADMIN)]
KeyId = Annotated[str, Path(max_length=100)]


class KeyOut(BaseModel):
    """A key, without what makes it one."""

    id: str
    name: str
    last4: str = Field(description="The last four characters of the key.")
    scopes: list[str]
    created_at: datetime
    last_used_at: datetime | None = Field(description="Noted at most once a minute.")
    revoked_at: datetime | None

    @classmethod
    def of(cls, row: KeySummary) -> Self:
        """Show a key."""
        return cls(
            id=row.id,
            name=row.name,
            last4=row.last4,
            scopes=list(row.scopes),
            created_at=row.created_at,
            last_used_at=row.last_used_at,
            revoked_at=row.revoked_at,
        )


class NewKeyOut(BaseModel):
    """A new key. The key itself is shown in this answer alone."""

    id: str
    key: str = Field(examples=["kn_live_..."])


class KeyIn(BaseModel):
    """What a key is for, and what it may do."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=NAME_MAX, examples=["the shop"])
    scopes: list[Scope] = Field(min_length=1, max_length=len(Scope))


@router.get("/v1/api-keys")
def list_all(caller: Admin, backends: Served, page: Page) -> Listed[KeyOut]:
    """List the keys, revoked ones too, oldest first."""
    with backends.database.read() as conn:
        rows = list_api_keys(conn, caller.workspace_id, after=page.after or FIRST, most=page.most)
    return page.cut(rows, KeyOut.of, lambda row: row.id)


@router.get("/v1/api-keys/{key_id}")
def read_one(caller: Admin, backends: Served, key_id: KeyId) -> KeyOut:
    """Show one key."""
    with backends.database.read() as conn:
        found = find_key_by_id(conn, caller.workspace_id, key_id)
    if found is None:
        raise NotFound(f"there is no key {key_id!r} in workspace {caller.workspace_id!r}")
    return KeyOut.of(found)


@router.post("/v1/api-keys", status_code=201, dependencies=[Depends(tell_once)])
def create_one(caller: Admin, backends: Served, wanted: KeyIn) -> NewKeyOut:
    """Make a key."""
    scopes = list(dict.fromkeys(wanted.scopes))
    with at_field("name"):
        made = create_key(backends.database, backends.clock, caller, (wanted.name, scopes))
    return NewKeyOut(id=made.id, key=made.text)


@router.delete("/v1/api-keys/{key_id}", status_code=204)
def revoke_one(caller: Admin, backends: Served, key_id: KeyId) -> None:
    """Make a key worthless from now on. It stays in the list; a second call changes nothing."""
    revoke_key(backends.database, backends.clock, caller, key_id)
