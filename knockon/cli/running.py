"""`knockon run`: one process in the foreground.

The door of the command loads this module alone for it, since a process that is started again should be back
at once, and the other commands carry half of the house with them.
"""

from dataclasses import dataclass
from typing import Annotated

import typer

from knockon.cli.errors import Commands
from knockon.cli.options import takes
from knockon.rooms import Room, serve_room, tie_to_parent
from knockon.servers import with_servers
from shared.logs import configure_logs
from shared.process import leave
from shared.settings import load_settings


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Which process."""

    room: Annotated[Room, typer.Argument(help="The process to run.")]
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
    if options.tied:
        tie_to_parent(settings.shutdown_grace_s)
    leave(serve_room(options.room, ready))


def make_app() -> typer.Typer:
    """Make the top of all commands, with this one and no other."""
    made = typer.Typer(
        cls=Commands,
        name="knockon",
        help="Domain events in, automations that run.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_top)
    add_to(made)
    return made


def _top() -> None:
    """Domain events in, automations that run."""


app = make_app()
