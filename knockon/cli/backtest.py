"""`knockon backtest`: what drafts would have done on the events that are still on the stream."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from knockon.cli.apply import parse_file, read_definitions
from knockon.cli.connections import opened_backends, read_settings
from knockon.cli.options import DEFAULT_WORKSPACE, Output, Workspace, takes
from knockon.cli.output import Form, console, print_json, print_line
from knockon.cli.tail import parse_span
from knockon.cli.why_tables import print_backtest
from shared.services.backtests import Stretch, backtest
from shared.services.why_shown import backtest_document
from shared.time.clock import SystemClock, epoch_ms

LAST_DAY: Final = timedelta(days=1)

Tell = Callable[[int, datetime], None]


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """Which drafts, and which events."""

    file: Annotated[
        list[Path],
        typer.Option(
            "--file", "-f", parser=parse_file, metavar="FILE", help="A YAML file, or - for stdin; repeat it."
        ),
    ]
    since: Annotated[
        timedelta | None, typer.Option(parser=parse_span, metavar="24h", help="Begin so far back.")
    ] = None
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1_000_000, help="At most so many events.")
    ] = 100_000
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add this command to the top."""
    app.command("backtest")(run_backtest)


@takes(BacktestOptions)
def run_backtest(options: BacktestOptions) -> None:
    """Hold drafts against recorded events, and say what they would have done; nothing is done."""
    definitions = read_definitions(options.file)
    settings = read_settings()
    now = SystemClock().now()
    begin = now - (LAST_DAY if options.since is None else options.since)
    stretch = Stretch((max(0, epoch_ms(begin)), 0), most=options.limit)
    documents = []
    with opened_backends() as backends:
        for definition in definitions:
            with _progress(definition.key, begin, now) as tell:
                found = backtest(backends, settings, options.workspace, (definition, stretch), tell)
            documents.append({"key": definition.key, **backtest_document(found)})
    if options.output is Form.JSON:
        print_json(documents)
        return
    for place, document in enumerate(documents):
        print_line(f"{'' if not place else chr(10)}{document['key']}", "bold")
        print_backtest(document)


@contextmanager
def _progress(key: str, begin: datetime, end: datetime) -> Iterator[Tell]:
    """Give what hears of the progress; on a terminal it is shown, by how much of the time is gone through."""
    if not sys.stderr.isatty():
        yield lambda events, at: None
        return
    columns = (
        TextColumn(key),
        BarColumn(),
        TextColumn("{task.fields[events]:,} events"),
        TimeElapsedColumn(),
    )
    with ProgressBar(*columns, console=console(sys.stderr), transient=True) as progress:
        task = progress.add_task(key, total=(end - begin).total_seconds(), events=0)

        def tell(events: int, at: datetime) -> None:
            progress.update(task, completed=(at - begin).total_seconds(), events=events)

        yield tell
