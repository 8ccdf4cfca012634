"""`knockon up`: everything at once."""

from dataclasses import dataclass
from typing import Annotated

import typer

from knockon.cli.options import takes
from knockon.up import Counts, run_up
from shared.logs import configure_logs
from shared.settings import load_settings

Number = Annotated[int, typer.Option(min=1, max=64, help="How many of these processes.")]


@dataclass(frozen=True, slots=True)
class UpOptions:
    """How many of each process."""

    workers: Number = 1
    matchers: Number = 1


def add_to(app: typer.Typer) -> None:
    """Add this command to the top."""
    app.command("up")(up)


@takes(UpOptions)
def up(options: UpOptions) -> None:
    """Start everything and keep it running; Redis and the database too, unless their URLs are set."""
    settings = load_settings()
    configure_logs(settings)
    run_up(settings, Counts(workers=options.workers, matchers=options.matchers))
