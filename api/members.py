"""`/v1/members`: who belongs to the key's workspace."""

from datetime import datetime
from typing import Annotated, Final, Self

from fastapi import APIRouter, Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from api.auth import needs
from api.errors import at_field
from api.paging import Listed, Page
from api.served import Served
from shared.db.members import MemberRow, find_member_by_id, list_members
from shared.db.sql import FIRST
from shared.errors import NotFound
from shared.model.roles import Role
from shared.services.backends import Backends, Caller
from shared.services.members import (
    NAME_MAX,
    NewMember,
    add_member,
    change_role,
    read_member_name,
    remove_member,
)
from shared.services.workspaces import Scope

router: Final = APIRouter(tags=["members"])

Admin = Annotated[Caller, needs(Scope.ADMIN)]
MemberId = Annotated[str, Path(max_length=100)]


class MemberOut(BaseModel):
    """Somebody in the workspace."""

    id: str
    email: str
    name: str
    role: Role
    created_at: datetime

    @classmethod
    def of(cls, row: MemberRow) -> Self:
        """Show a member."""
        return cls(id=row.id, email=row.email, name=row.name, role=row.role, created_at=row.created_at)


class MemberIn(BaseModel):
    """Somebody to be added; without a name the address stands for it."""

    model_config = ConfigDict(extra="forbid")

    email: str = Field(max_length=254, examples=["ada@example.com"])
    role: Role
    name: Annotated[str | None, AfterValidator(read_member_name)] = Field(default=None, max_length=NAME_MAX)


class RoleIn(BaseModel):
    """Another role for somebody."""

    model_config = ConfigDict(extra="forbid")

    role: Role


@router.get("/v1/members")
def list_all(caller: Admin, backends: Served, page: Page) -> Listed[MemberOut]:
    """List the members in the order in which they came."""
    with backends.database.read() as conn:
        rows = list_members(conn, caller.workspace_id, after=page.after or FIRST, most=page.most)
    return page.cut(rows, MemberOut.of, lambda row: row.id)


@router.get("/v1/members/{member_id}")
def read_one(caller: Admin, backends: Served, member_id: MemberId) -> MemberOut:
    """Show one member."""
    return MemberOut.of(_find(backends, caller, member_id))


@router.post("/v1/members", status_code=201)
def add_one(caller: Admin, backends: Served, wanted: MemberIn) -> MemberOut:
    """Add somebody."""
    new = NewMember(wanted.email, wanted.role, wanted.name)
    with at_field("email"):
        return MemberOut.of(add_member(backends.database, backends.clock, caller, new))


@router.patch("/v1/members/{member_id}")
def change_one(caller: Admin, backends: Served, member_id: MemberId, wanted: RoleIn) -> MemberOut:
    """Give somebody another role; the last owner keeps theirs."""
    row = _find(backends, caller, member_id)
    changed = change_role(backends.database, backends.clock, caller, (row.email, wanted.role))
    return MemberOut.of(changed.member)


@router.delete("/v1/members/{member_id}", status_code=204)
def remove_one(caller: Admin, backends: Served, member_id: MemberId) -> None:
    """Take somebody out; the last owner stays."""
    row = _find(backends, caller, member_id)
    remove_member(backends.database, backends.clock, caller, row.email)


def _find(backends: Backends, caller: Caller, member_id: str) -> MemberRow:
    with backends.database.read() as conn:
        found = find_member_by_id(conn, caller.workspace_id, member_id)
    if found is None:
        raise NotFound(f"there is no member {member_id!r} in workspace {caller.workspace_id!r}")
    return found
