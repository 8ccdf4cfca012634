"""`knockon members`: who belongs to a workspace, and in which role."""

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from knockon.cli.connections import caller, opened_database
from knockon.cli.options import DEFAULT_WORKSPACE, ListOptions, Output, Workspace, takes
from knockon.cli.output import Form, print_json, print_line, print_table, show_instant
from shared.db.members import list_members
from shared.model.roles import Role
from shared.services.members import NewMember, add_member, change_role, remove_member
from shared.time.clock import SystemClock

group = typer.Typer(help="Who belongs to a workspace.", no_args_is_help=True)

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The member's mail address.")]
RoleOption = Annotated[Role, typer.Option("--role", help="What the member may do.")]


@dataclass(frozen=True, slots=True)
class AddOptions:
    """Who is added."""

    email: Email
    role: RoleOption
    name: Annotated[str | None, typer.Option(help="The name; the address, if left out.")] = None
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Who gets another role."""

    email: Email
    role: RoleOption
    workspace: Workspace = DEFAULT_WORKSPACE


@dataclass(frozen=True, slots=True)
class RemoveOptions:
    """Who is removed."""

    email: Email
    workspace: Workspace = DEFAULT_WORKSPACE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="members")


@group.command("list")
@takes(ListOptions)
def list_all(options: ListOptions) -> None:
    """List a workspace's members with their roles."""
    with opened_database() as database, database.read() as conn:
        members = list_members(conn, options.workspace)
    if options.output is Form.JSON:
        print_json([asdict(member) for member in members])
        return
    rows = ((each.email, each.role, each.name, show_instant(each.created_at)) for each in members)
    print_table(("EMAIL", "ROLE", "NAME", "SINCE"), rows)


@group.command("add")
@takes(AddOptions)
def add_one(options: AddOptions) -> None:
    """Add somebody; owners and admins get the notices of dead letters."""
    with opened_database() as database:
        wanted = NewMember(options.email, options.role, options.name)
        member = add_member(database, SystemClock(), caller(options.workspace), wanted)
    if options.output is Form.JSON:
        print_json(asdict(member))
        return
    print_line(f"{member.email} is {member.role} of {options.workspace}")


@group.command("set")
@takes(SetOptions)
def set_one(options: SetOptions) -> None:
    """Give a member another role. The last owner stays one."""
    with opened_database() as database:
        wanted = (options.email, options.role)
        before = change_role(database, SystemClock(), caller(options.workspace), wanted).before
    print_line(
        f"{options.email} is {options.role}" + (" already" if before is options.role else f" (was {before})")
    )


@group.command("remove")
@takes(RemoveOptions)
def remove_one(options: RemoveOptions) -> None:
    """Take somebody out of a workspace. The last owner stays."""
    with opened_database() as database:
        remove_member(database, SystemClock(), caller(options.workspace), options.email)
    print_line("removed")
