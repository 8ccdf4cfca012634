"""`knockon run`: one process in the foreground."""

import os
from dataclasses import dataclass
from typing import Annotated

import typer

from knockon.cli.options import takes
from knockon.rooms import Room, serve_room, tie_to_parent
from knockon.servers import server_variables, with_servers
from shared.logs import configure_logs
from shared.process import leave
from shared.settings import load_settings


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Which process."""

    room: Annotated[Room, typer.Argument(metavar="ROOM", help="The process to run.")]
    tied: Annotated[bool, typer.Option("--tied", hidden=True)] = False


def add_to(app: typer.Typer) -> None:
    """Add this command to the top."""
    app.command("run")(run)


@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Run one process in the foreground."""
    settings = load_settings()
    configure_logs(settings)
    ready = with_servers(settings)
    os.environ.update(server_variables(ready))  # for the processes that a worker starts
    if options.tied:
        tie_to_parent(settings.shutdown_grace_s)
    leave(serve_room(options.room, ready))
