"""`knockon publish`: put events on the stream, one from the arguments or many from a file."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TextIO

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from knockon.cli.connections import read_settings
from knockon.cli.options import DEFAULT_WORKSPACE, Output, Workspace, takes
from knockon.cli.output import Form, console, print_json, print_line
from knockon.client import Publisher
from knockon.event_lines import publish_lines, read_event, read_payload
from knockon.servers import redis_url
from shared.errors import ConfigError

STDIN: Final = "-"


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """One event, or a file of them."""

    type: Annotated[str | None, typer.Argument(metavar="TYPE", help="What happened, like order.placed.")] = (
        None
    )
    payload: Annotated[str | None, typer.Option(help="The payload, a JSON object.")] = None
    id: Annotated[str | None, typer.Option(help="Your id of the event; a second publish starts nothing.")] = (
        None
    )
    file: Annotated[str | None, typer.Option("--file", "-f", help="JSON lines, or - for stdin.")] = None
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add this command to the top."""
    app.command("publish")(publish)


@takes(PublishOptions)
def publish(options: PublishOptions) -> None:
    """Publish one event, or every line of a file of events."""
    if (options.type is None) == (options.file is None):
        raise typer.BadParameter("give a TYPE, or --file")
    if options.file is not None and (options.payload is not None or options.id is not None):
        raise typer.BadParameter("--payload and --id go with a TYPE, not with --file")
    with opened_publisher() as publisher:
        if options.file is not None:
            _publish_file(publisher, options.file, options)
        else:
            _publish_one(publisher, options)


@contextmanager
def opened_publisher() -> Iterator[Publisher]:
    """Open the publishing client for this deployment's stream."""
    settings = read_settings()
    with Publisher(
        redis_url(settings),
        stream=settings.events_stream,
        maxlen=settings.events_maxlen,
        prefix=settings.prefix,
        source="cli",
    ) as publisher:
        yield publisher


def _publish_one(publisher: Publisher, options: PublishOptions) -> None:
    fields = {
        "type": options.type,
        "payload": read_payload(options.payload or "{}"),
        "id": options.id,
    }
    draft = read_event(
        {name: value for name, value in fields.items() if value is not None}, options.workspace
    )
    (entry_id,) = publisher.publish_many([draft])
    if options.output is Form.JSON:
        print_json({"entry_id": entry_id, "id": draft.id})
        return
    print_line(entry_id)


def _publish_file(publisher: Publisher, name: str, options: PublishOptions) -> None:
    with _opened(name) as source:
        lines = _with_progress(source) if sys.stderr.isatty() and source.seekable() else source
        sent = max(publish_lines(publisher, lines, options.workspace), default=0)
    if options.output is Form.JSON:
        print_json({"published": sent})
        return
    print_line(f"{sent} published")


@contextmanager
def _opened(name: str) -> Iterator[TextIO]:
    if name == STDIN:
        yield sys.stdin
        return
    try:
        with Path(name).open(encoding="utf-8") as source:
            yield source
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is not UTF-8") from error


def _with_progress(source: TextIO) -> Iterable[str]:
    """Give the lines, and show on the terminal how far in the file they are."""
    size = source.seek(0, 2)
    source.seek(0)
    columns = (TextColumn("publishing"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr)) as progress:
        task = progress.add_task("publishing", total=size)
        for line in source:
            yield line
            progress.advance(task, len(line.encode()))
