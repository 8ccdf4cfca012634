"""`knockon init` and `knockon migrate`: a workspace, and the shape of the database."""

from dataclasses import dataclass
from typing import Annotated

import typer

from knockon.cli.connections import caller, opened_database, read_settings, user_name
from knockon.cli.options import DEFAULT_WORKSPACE, Output, takes
from knockon.cli.output import Form, print_json, print_line
from knockon.servers import database_url
from shared.db.migrating import migrate
from shared.masking import mask_urls
from shared.services.workspaces import create_workspace
from shared.time.clock import SystemClock


@dataclass(frozen=True, slots=True)
class InitOptions:
    """Which workspace is made, and who owns it."""

    workspace: Annotated[
        str, typer.Argument(envvar="KNOCKON_WORKSPACE", metavar="WORKSPACE", help="The workspace's name.")
    ] = DEFAULT_WORKSPACE
    owner: Annotated[str | None, typer.Option(metavar="EMAIL", help="Who owns it; you, if left out.")] = None
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top."""
    app.command("init")(init)
    app.command("migrate")(migrate_database)


@takes(InitOptions)
def init(options: InitOptions) -> None:
    """Make a workspace with its owner and a key, which is shown this once."""
    with opened_database() as database:
        owner = f"{user_name()}@localhost" if options.owner is None else options.owner
        made = create_workspace(database, SystemClock(), caller(options.workspace), owner)
    if options.output is Form.JSON:
        document = {
            "workspace": options.workspace,
            "created": made is not None,
            "key": made.text if made else None,
        }
        print_json(document)
    elif made is None:
        print_line(f"workspace {options.workspace} is there already; nothing was changed")
    else:
        print_line(f"workspace {options.workspace} is made; its key, shown only this once:")
        print_line(made.text)


def migrate_database() -> None:
    """Bring the database to the newest shape; where it has it already, nothing happens."""
    settings = read_settings()
    url = database_url(settings)
    print_line(f"{mask_urls(url)} {migrate(url)}")
