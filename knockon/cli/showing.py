"""`knockon demo`: what it can do, shown in half a minute."""

from dataclasses import dataclass
from typing import Annotated

import typer

from knockon.cli.options import takes
from knockon.demo import Keep, run_demo
from shared.logs import configure_logs
from shared.settings import load_settings


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What becomes of the demo's data."""

    keep: Annotated[bool, typer.Option("--keep", help="Keep the data and say where they are.")] = False


def add_to(app: typer.Typer) -> None:
    """Add this command to the top."""
    app.command("demo")(demo)


@takes(DemoOptions)
def demo(options: DemoOptions) -> None:
    """Run example automations on example events, show what became of them, and end."""
    settings = load_settings()
    configure_logs(settings)
    raise typer.Exit(run_demo(settings, Keep.DATA if options.keep else Keep.NOTHING))
