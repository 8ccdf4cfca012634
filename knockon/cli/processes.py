"""`knockon up` and `knockon demo`: what starts processes."""

from dataclasses import dataclass
from typing import Annotated

import typer

from knockon.cli.options import takes
from knockon.demo import Keep, run_demo
from knockon.up import Counts, run_up
from shared.logs import configure_logs
from shared.settings import load_settings

Number = Annotated[int, typer.Option(min=1, max=64, help="How many of these processes.")]


@dataclass(frozen=True, slots=True)
class UpOptions:
    """How many of each process."""

    workers: Number = 1
    matchers: Number = 1


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What becomes of the demo's data."""

    keep: Annotated[bool, typer.Option("--keep", help="Keep the data and say where they are.")] = False


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top."""
    app.command("up")(up)
    app.command("demo")(demo)


@takes(UpOptions)
def up(options: UpOptions) -> None:
    """Start everything and keep it running; Redis and the database too, unless their URLs are set."""
    settings = load_settings()
    configure_logs(settings)
    run_up(settings, Counts(workers=options.workers, matchers=options.matchers))


@takes(DemoOptions)
def demo(options: DemoOptions) -> None:
    """Run example automations on example events, show what became of them, and end."""
    settings = load_settings()
    configure_logs(settings)
    raise typer.Exit(run_demo(settings, Keep.DATA if options.keep else Keep.NOTHING))
