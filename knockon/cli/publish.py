"""`knockon publish`: put events on the stream, one from the arguments or many from a file."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Final, TextIO

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from sqlalchemy.exc import DBAPIError

from knockon.cli.connections import read_settings
from knockon.cli.options import DEFAULT_WORKSPACE, Output, Workspace, takes
from knockon.cli.output import Form, console, print_error, print_json, print_line, print_note
from knockon.client import PIPELINE_SIZE, Publisher, PublishError
from knockon.event_lines import (
    BadLine,
    CheckWorkspace,
    Progress,
    publish_lines,
    read_event,
    read_payload,
    trust,
)
from knockon.servers import database_url, has_database, redis_url
from shared.db.engine import Database, open_database
from shared.process import INTERRUPTED
from shared.services.references import check_workspace
from shared.settings import Settings

STDIN: Final = "-"
BAD_BYTES: Final = "surrogateescape"


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
    if options.type is None and options.file is None:
        raise typer.BadParameter("give a TYPE, or --file")
    if options.type is not None and options.file is not None:
        raise typer.BadParameter("give only one of TYPE and --file")
    if options.file == "":
        raise typer.BadParameter("give a file, or - for stdin")
    if options.file is not None and (options.payload is not None or options.id is not None):
        raise typer.BadParameter("--payload and --id go with a TYPE, not with --file")
    settings = read_settings()
    with _opened_publisher(settings) as publisher, _opened_check(settings) as check:
        if options.file is not None:
            _publish_file(publisher, options, check)
        else:
            _publish_one(publisher, options, check)


@contextmanager
def _opened_publisher(settings: Settings) -> Iterator[Publisher]:
    with Publisher(
        redis_url(settings),
        stream=settings.events_stream,
        maxlen=settings.events_maxlen,
        prefix=settings.prefix,
        source="cli",
    ) as publisher:
        yield publisher


@contextmanager
def _opened_check(settings: Settings) -> Iterator[CheckWorkspace]:
    """Give what raises NotFound for an unknown workspace; where no database is known, all pass."""
    if not has_database(settings):
        yield trust
        return
    database = open_database(database_url(settings), pool_size=1)
    try:
        yield Workspaces(database).check
    finally:
        database.dispose()


class Workspaces:
    """The workspaces that exist, each asked for once. Events need Redis alone: a database may be away."""

    def __init__(self, database: Database) -> None:
        """Ask for nothing yet."""
        self._database = database
        self._known: set[str] = set()
        self._is_away = False

    def check(self, workspace_id: str) -> None:
        """Raise NotFound unless there is such a workspace, or nobody can tell."""
        if self._is_away or workspace_id in self._known:
            return
        try:
            with self._database.read() as conn:
                check_workspace(conn, workspace_id)
        except DBAPIError:
            self._is_away = True
            print_note("the database does not answer: it was not checked whether the workspace exists")
        self._known.add(workspace_id)


def _publish_one(publisher: Publisher, options: PublishOptions, check: CheckWorkspace) -> None:
    fields = {
        "type": options.type,
        "payload": read_payload(options.payload or "{}"),
        "id": options.id,
    }
    draft = read_event(
        {name: value for name, value in fields.items() if value is not None}, options.workspace
    )
    check(draft.workspace_id)
    (entry_id,) = publisher.publish_many([draft])
    if options.output is Form.JSON:
        print_json({"entry_id": entry_id, "id": draft.id})
        return
    print_line(entry_id)


def _publish_file(publisher: Publisher, options: PublishOptions, check: CheckWorkspace) -> None:
    done = Progress()
    try:
        with _opened(options.file or STDIN) as source:
            lines = _with_progress(source) if sys.stderr.isatty() and source.seekable() else source
            for progress in publish_lines(publisher, lines, options.workspace, check):
                done = progress
    except KeyboardInterrupt as error:
        print_error(f"interrupted; {_how_far(done)}")
        raise typer.Exit(INTERRUPTED) from error
    except BadLine:
        print_note(f"{_published(done)}; go on from line {done.next_line}")
        raise
    except PublishError:
        print_note(_how_far(done))
        raise
    if options.output is Form.JSON:
        print_json({"published": done.published})
        return
    print_line(f"{done.published} published")


def _how_far(done: Progress) -> str:
    """Say where to go on; what was on its way when it broke off may be on the stream already."""
    return (
        f"{_published(done)} for certain; go on from line {done.next_line}: of those that"
        f" follow, up to {PIPELINE_SIZE} may be published too, and start nothing twice if they have an id"
    )


def _published(done: Progress) -> str:
    return f"{done.published} {'is' if done.published == 1 else 'are'} published"


@contextmanager
def _opened(name: str) -> Iterator[TextIO]:
    """Open a file so that bytes which are no text make their own line a bad one, and no other."""
    if name == STDIN:
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors=BAD_BYTES)
        yield sys.stdin
        return
    with Path(name).open(encoding="utf-8", errors=BAD_BYTES) as source:
        yield source


def _with_progress(source: TextIO) -> Iterable[str]:
    """Give the lines, and show on the terminal how far in the file they are."""
    size = source.seek(0, 2)
    source.seek(0)
    columns = (TextColumn("publishing"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with ProgressBar(*columns, console=console(sys.stderr)) as progress:
        task = progress.add_task("publishing", total=size)
        for line in source:
            yield line
            progress.advance(task, len(line.encode(errors=BAD_BYTES)))
