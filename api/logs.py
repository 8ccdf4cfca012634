"""The log of runs: in pages, in either order, and followed as it is written."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Query, Request
from pydantic import Field
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from api.auth import key_text, needs
from api.errors import refused_at
from api.log_feed import LogFeeds
from api.log_lines import LogOut
from api.log_stream import Following, LogStream
from api.paging import Listed, Page, PageAsked, no_cursor
from api.runs import Automation, read_time
from api.served import Served
from shared.db.log_reads import (
    LEVELS,
    START,
    LogCursor,
    LogQuery,
    log_end,
    log_start,
    logs_after,
    logs_before,
    read_cursor,
)
from shared.services.authentication import recognize
from shared.services.backends import Backends, Caller
from shared.services.references import ever_automation_id
from shared.services.workspaces import Scope

ID_CHARS_MAX: Final = 100
EXAMPLE: Final = 'id: 7041-3\nevent: log\ndata: {"id": "7041-3", "message": "run started"}\n\n'

router: Final = APIRouter(tags=["log"])

Reader = Annotated[Caller, needs(Scope.RUNS_READ)]
Level = StrEnum("Level", {level.upper(): level for level in LEVELS})  # type: ignore[misc]
Place = Annotated[str | None, Query(max_length=40, description="Only behind this place; `as_of` of a list.")]
LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=40, description="The last id that was seen.")
]


class Order(StrEnum):
    """Whether a list begins with the newest line, or with the oldest."""

    DESC = "desc"
    ASC = "asc"


class LogsOut(Listed[LogOut]):
    """A page of the log. Whoever follows from `as_of` on misses no line, and sees none a second time."""

    as_of: str | None = Field(description="The place up to which the log was read; null on later pages.")


@dataclass(frozen=True, slots=True)
class Which:
    """Which lines are asked for, but for the workspace and the automation, which has to be looked up."""

    query: LogQuery
    automation: str | None

    def of(self, conn: Connection, caller: Caller) -> LogQuery:
        """Give the query of a caller. Raises NotFound for an automation that there never was."""
        automation_id = ever_automation_id(conn, caller.workspace_id, self.automation)
        return replace(self.query, workspace_id=caller.workspace_id, automation_id=automation_id)


async def read_which(
    time: Annotated[tuple[datetime | None, datetime | None], Depends(read_time)],
    automation: Automation = None,
    run: Annotated[str | None, Query(max_length=ID_CHARS_MAX, description="Only of this run.")] = None,
    level: Annotated[Level | None, Query(description="Only of this level, or more severe.")] = None,
) -> Which:
    """Read which lines are asked for."""
    since, until = time
    query = LogQuery("", run_id=run, level=None if level is None else level.value, since=since, until=until)
    return Which(query, automation)


async def read_place(after: Place = None, last_event_id: LastEventId = None) -> LogCursor | None:
    """Read from where to follow: the last id that was seen, else `after`. Raises Refused."""
    name, text = ("Last-Event-ID", last_event_id) if last_event_id else ("after", after)
    if not text:
        return None
    try:
        return read_cursor(text)
    except ValueError as error:
        raise refused_at(name, str(error)) from error


Asked = Annotated[Which, Depends(read_which)]
From = Annotated[LogCursor | None, Depends(read_place)]
Sorted = Annotated[Order, Query(description="The newest lines first, or the oldest.")]


@router.get("/v1/logs")
def list_some(
    caller: Reader, backends: Served, asked: Asked, page: Page, order: Sorted = Order.DESC
) -> LogsOut:
    """List lines of the log of runs."""
    with backends.database.read() as conn:
        query = asked.of(conn, caller)
        return _upward(conn, query, page) if order is Order.ASC else _downward(conn, query, page)


@router.get(
    "/v1/logs/stream",
    response_class=Response,
    responses={
        200: {
            "description": "Server-sent events `log`, whose data are lines as the list has them.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}},
        }
    },
)
async def follow(caller: Reader, backends: Served, asked: Asked, place: From, request: Request) -> Response:
    """Send lines of the log as they are written.

    It begins behind `Last-Event-ID` or `after`, or at the end if that is further on than the log goes;
    without both at `from`, or with the first line of `run`, or else with what is written from now on.
    """
    feeds: LogFeeds = request.app.state.log_feeds
    query, begin = await run_in_threadpool(_begin, backends, caller, asked, place)
    text = key_text(request.headers)
    wanted = Following(query, begin, lambda: _is_welcome(backends, text))
    return LogStream(feeds, wanted)


def _upward(conn: Connection, query: LogQuery, page: PageAsked) -> LogsOut:
    begin = START if query.since is None else log_start(conn, query.workspace_id, query.since)
    found = logs_after(conn, query, _read_cursor(page) or begin, most=page.limit)
    shown = [LogOut.of(row) for row in found.rows]
    return LogsOut(
        items=shown, next=page.cursor(None if found.is_end else str(found.edge)), as_of=str(found.edge)
    )


def _downward(conn: Connection, query: LogQuery, page: PageAsked) -> LogsOut:
    before = _read_cursor(page)
    end = log_end(conn, query.workspace_id)
    found = logs_before(conn, query, before, most=page.limit)
    as_of = max([end, *(row.cursor for row in found.rows)]) if before is None else None
    return LogsOut(
        items=[LogOut.of(row) for row in found.rows],
        next=page.cursor(None if found.is_end else str(found.edge)),
        as_of=None if as_of is None else str(as_of),
    )


def _read_cursor(page: PageAsked) -> LogCursor | None:
    try:
        return None if page.after is None else read_cursor(page.after)
    except ValueError:
        raise no_cursor() from None


def _begin(
    backends: Backends, caller: Caller, asked: Which, place: LogCursor | None
) -> tuple[LogQuery, LogCursor]:
    with backends.database.read() as conn:
        query = asked.of(conn, caller)
        if place is not None:
            return query, min(
                place, log_end(conn, query.workspace_id)
            )  # beyond the end nothing would ever come
        if query.since is not None:
            return query, log_start(conn, query.workspace_id, query.since)
        return query, START if query.run_id is not None else log_end(conn, query.workspace_id)


def _is_welcome(backends: Backends, key: str) -> bool:
    found = recognize(backends.database, backends.clock, key)
    return found is not None and Scope.RUNS_READ in found.scopes
