"""`knockon tail`: the log of runs as it is written."""

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Annotated, Final

import typer

from knockon.cli.connections import opened_database
from knockon.cli.log_printing import print_log_line
from knockon.cli.options import DEFAULT_WORKSPACE, Output, Workspace, takes
from knockon.cli.output import Form
from knockon.cli.tail_api import Tailing, follow, print_backlog
from knockon.log_following import Api
from shared.db.engine import Database
from shared.db.log_reads import (
    LEVELS,
    START,
    LogCursor,
    LogQuery,
    LogRow,
    log_end,
    log_start,
    logs_after,
    newest_logs,
)
from shared.errors import ConfigError
from shared.masking import mask_tree
from shared.model.event_fields import format_instant
from shared.process import StopFlag
from shared.services.references import check_workspace, ever_automation_id
from shared.time.clock import SystemClock

POLL_S: Final = 0.25
PAGE: Final = 500
LINES_BEFORE: Final = 10
API_URL: Final = "KNOCKON_API_URL"
API_KEY: Final = "KNOCKON_API_KEY"

_SPAN: Final = re.compile(r"(\d{1,6})(ms|s|m|h|d)")
_UNITS: Final = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_span(text: str) -> timedelta:
    """Read a stretch of time such as 90s, 10m, 24h or 7d."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is no stretch of time; write 90s, 10m, 24h or 7d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def parse_url(text: str) -> str:
    """Read the address of an API."""
    if re.fullmatch(r"https?://[^\s/?#]+/?", text) is None:
        raise typer.BadParameter(f"{text!r} is no address of an API; write http://127.0.0.1:8420")
    return text


@dataclass(frozen=True, slots=True)
class TailOptions:
    """Which lines, and whether to wait for more."""

    automation: Annotated[str | None, typer.Option(metavar="KEY", help="Only this automation's.")] = None
    run: Annotated[str | None, typer.Option(metavar="RUN_ID", help="Only this run's.")] = None
    level: Annotated[str | None, typer.Option(help=f"Only this level and worse: {', '.join(LEVELS)}.")] = None
    since: Annotated[
        timedelta | None, typer.Option(parser=parse_span, metavar="10m", help="Begin so far back.")
    ] = None
    api: Annotated[
        str | None,
        typer.Option(
            envvar=API_URL,
            parser=parse_url,
            metavar="URL",
            help=f"Ask the API at this URL, with the key in {API_KEY}, whose workspace it is then.",
        ),
    ] = None
    no_follow: Annotated[bool, typer.Option("--no-follow", help="End with the last line there is.")] = False
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add this command to the top."""
    app.command("tail")(tail)


@takes(TailOptions)
def tail(options: TailOptions) -> None:
    """Print the log of runs, the last lines first, then each new one; Ctrl-C ends it."""
    if options.level is not None and options.level not in LEVELS:
        raise typer.BadParameter(f"--level is one of {', '.join(LEVELS)}")
    stop = StopFlag()
    stop.listen()
    if options.api is not None:
        _tail_api(options, options.api, stop)
        return
    with opened_database() as database:
        query = _query(database, options)
        cursor = _print_backlog(database, query, options)
        while not (options.no_follow or stop.wait(POLL_S)):
            cursor = _print_new(database, query, cursor, options.output)


def _query(database: Database, options: TailOptions) -> LogQuery:
    with database.read() as conn:
        check_workspace(conn, options.workspace)
        automation_id = ever_automation_id(conn, options.workspace, options.automation)
    since = SystemClock().now() - options.since if options.since else None
    return LogQuery(options.workspace, automation_id, options.run, options.level, since)


def _print_backlog(database: Database, query: LogQuery, options: TailOptions) -> LogCursor:
    """Print what is there already; give the place to go on from."""
    with database.read() as conn:
        if query.since is None and options.run is None:
            end = log_end(conn, query.workspace_id)
            rows = newest_logs(conn, query, most=LINES_BEFORE)
            _print(rows, options.output)
            return max([end, *(row.cursor for row in rows)])
        start = START if query.since is None else log_start(conn, query.workspace_id, query.since)
    return _print_new(database, query, start, options.output)


def _print_new(database: Database, query: LogQuery, cursor: LogCursor, output: Form) -> LogCursor:
    """Print all that follows the cursor; give the place to go on from, past the lines that were left out."""
    while True:
        with database.read() as conn:
            page = logs_after(conn, query, cursor, most=PAGE)
        _print(page.rows, output)
        cursor = page.edge
        if page.is_end:
            return cursor


def _print(rows: Iterable[LogRow], output: Form) -> None:
    for row in rows:
        line = asdict(row) | {"data": mask_tree(row.data)}
        line.pop("cursor")
        print_log_line({"id": str(row.cursor), **line}, output)
    sys.stdout.flush()


def _tail_api(options: TailOptions, url: str, stop: StopFlag) -> None:
    key = os.environ.get(API_KEY)
    if not key:
        raise ConfigError(f"{API_KEY}: set it to a key with the scope runs:read, as: knockon keys create")
    asked = {"automation": options.automation, "run": options.run, "level": options.level}
    if options.since is not None:
        asked["from"] = format_instant(SystemClock().now() - options.since)
    given = {name: value for name, value in asked.items() if value is not None}
    last = LINES_BEFORE if options.since is None and options.run is None else None
    wanted, api = Tailing(given, last, options.output), Api(url.rstrip("/"), key)
    if options.no_follow:
        print_backlog(api, wanted)
        return
    follow(api, wanted, print_backlog(api, wanted) if last else None, stop)
