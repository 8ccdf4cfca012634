"""Who belongs to a workspace, and in which role. There is always an owner: the last one stays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.members import MemberRow, delete_member, list_members, set_member_role
from shared.db.people import Member, insert_member
from shared.db.persons_moves import lock_workspace
from shared.errors import ConfigError, Conflict, NotFound
from shared.ids import new_id
from shared.model.mail_addresses import read_address
from shared.model.roles import Role
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Caller
from shared.services.references import pick_member
from shared.time.clock import Clock

NAME_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class NewMember:
    """Somebody to be added; without a name the address stands for it."""

    email: str
    role: Role
    name: str | None = None


def read_member_name(text: str | None) -> str:
    """Give a name without the blanks around it, empty for none. Raises ValueError."""
    name = (text or "").strip()
    if len(name) > NAME_MAX or not name.isprintable():
        raise ValueError(f"must have at most {NAME_MAX} characters, on one line")
    return name


@dataclass(frozen=True, slots=True)
class ChangedRole:
    """A member with the role of now, and the one before, which may be the same."""

    member: MemberRow
    before: Role


def add_member(database: Database, clock: Clock, caller: Caller, wanted: NewMember) -> MemberRow:
    """Add somebody to the caller's workspace.

    Raises ConfigError for what is no mail address, Conflict for somebody who is a member, NotFound without
    the workspace.
    """
    email, now = _address(wanted.email), clock.now()
    member = Member(new_id(), caller.workspace_id, email, _name(wanted.name) or email, wanted.role)

    def work(conn: Connection) -> MemberRow:
        if _has(_locked(conn, caller), email) or not insert_member(conn, member, now=now):
            raise Conflict(f"{email} is a member of workspace {caller.workspace_id!r} already")
        after = {"email": email, "name": member.name, "role": member.role}
        write_deed(conn, caller, Deed("member.added", member.id, None, after), now)
        return MemberRow(member.id, email, member.name, member.role, now)

    return database.transact(work)


def change_role(database: Database, clock: Clock, caller: Caller, wanted: tuple[str, Role]) -> ChangedRole:
    """Give a member of the caller's workspace another role. The same changes nothing.

    Raises NotFound, and Conflict for the last owner.
    """
    email, role = _address(wanted[0]), wanted[1]
    now = clock.now()

    def work(conn: Connection) -> ChangedRole:
        members = _locked(conn, caller)
        found = pick_member(members, caller.workspace_id, email)
        if found.role is not role:
            _check_owner_left(members, found)
            set_member_role(conn, found.id, role)
            before, after = _told(found), {**_told(found), "role": role}
            write_deed(conn, caller, Deed("member.role_changed", found.id, before, after), now)
        return ChangedRole(replace(found, role=role), found.role)

    return database.transact(work)


def remove_member(database: Database, clock: Clock, caller: Caller, email: str) -> None:
    """Take somebody out of the caller's workspace. Raises NotFound, and Conflict for the last owner."""
    address, now = _address(email), clock.now()

    def work(conn: Connection) -> None:
        members = _locked(conn, caller)
        found = pick_member(members, caller.workspace_id, address)
        _check_owner_left(members, found)
        delete_member(conn, found.id)
        write_deed(conn, caller, Deed("member.removed", found.id, _told(found), None), now)

    database.transact(work)


def _locked(conn: Connection, caller: Caller) -> list[MemberRow]:
    """Give all members; nobody else changes any until the transaction ends, so that an owner is left."""
    if not lock_workspace(conn, caller.workspace_id):
        raise NotFound(f"there is no workspace {caller.workspace_id!r}")
    return list_members(conn, caller.workspace_id)


def _check_owner_left(members: Sequence[MemberRow], leaving: MemberRow) -> None:
    owners = [member.id for member in members if member.role is Role.OWNER]
    if owners == [leaving.id]:
        raise Conflict(f"{leaving.email} is the last owner; make somebody else an owner first")


def _has(members: Sequence[MemberRow], email: str) -> bool:
    return any(member.email.lower() == email for member in members)


def _told(member: MemberRow) -> Mapping[str, Any]:
    return {"email": member.email, "name": member.name, "role": member.role}


def _address(text: str) -> str:
    try:
        return read_address(text)
    except ValueError as error:
        raise ConfigError(f"{text!r} {error}") from None


def _name(text: str | None) -> str:
    try:
        return read_member_name(text)
    except ValueError as error:
        raise ConfigError(f"a name {error}") from None
