"""`knockon keys`: the keys with which programs call the API. A key is shown once and stored as a hash."""

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from knockon.cli.connections import caller, opened_database
from knockon.cli.options import DEFAULT_WORKSPACE, ListOptions, Output, Workspace, takes
from knockon.cli.output import Form, print_json, print_line, print_note, print_table, show_instant
from shared.db.api_keys import list_api_keys
from shared.services.references import check_workspace
from shared.services.workspaces import Scope, create_key, revoke_key
from shared.time.clock import SystemClock

group = typer.Typer(help="Keys of the API.", no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class CreateOptions:
    """What the key is for, and what it may do."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")]
    scope: Annotated[
        list[Scope] | None, typer.Option(help="What it may do; repeat it. All, if left out.")
    ] = None
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class RevokeOptions:
    """Which key."""

    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")]
    workspace: Workspace = DEFAULT_WORKSPACE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="keys")


@group.command("list")
@takes(ListOptions)
def list_all(options: ListOptions) -> None:
    """List a workspace's keys; the keys themselves are not stored."""
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, options.workspace)
        rows = list_api_keys(conn, options.workspace)
    if options.output is Form.JSON:
        print_json([asdict(row) for row in rows])
        return
    print_table(
        ("ID", "NAME", "ENDS WITH", "SCOPES", "CREATED", "LAST USED", "REVOKED"),
        (
            (
                row.id,
                row.name,
                row.last4,
                " ".join(row.scopes),
                show_instant(row.created_at),
                show_instant(row.last_used_at),
                show_instant(row.revoked_at),
            )
            for row in rows
        ),
    )


@group.command("create")
@takes(CreateOptions)
def create_one(options: CreateOptions) -> None:
    """Make a key and show it, this once."""
    with opened_database() as database:
        made = create_key(
            database, SystemClock(), caller(options.workspace), (options.name, options.scope or list(Scope))
        )
    if options.output is Form.JSON:
        print_json({"id": made.id, "key": made.text})
        return
    print_line(made.text)
    print_note("this is the only time that the key is shown")


@group.command("revoke")
@takes(RevokeOptions)
def revoke_one(options: RevokeOptions) -> None:
    """Make a key worthless from now on."""
    with opened_database() as database:
        revoke_key(database, SystemClock(), caller(options.workspace), options.key_id)
    print_line("revoked")
