"""One reader of the log for all who follow it. SQL is the truth; what was read last is kept at hand.

Everything here runs on the loop of the server, but for the statements, which threads of their own execute. A
follower keeps nothing but its place: one that is slow reads from SQL what is not at hand any more, so that
nothing grows however slow it is (docs/api.md, "Following the log").
"""

import asyncio
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from api.errors import Refused
from shared.db.engine import Database
from shared.db.log_reads import LogCursor, LogPage, LogQuery, LogRow, log_end, logs_after
from shared.logs import get_logger

T = TypeVar("T")

POLL_S: Final = 0.25
AFTER_FAULT_S: Final = 2.0
PAGE: Final = 500
AT_HAND: Final = 2_000
READERS: Final = 4
FOLLOWERS_MAX: Final = 200
OF_A_WORKSPACE_MAX: Final = 50
FULL_S: Final = 5

log: Final = get_logger("api")


@dataclass(slots=True)
class Feed:
    """The newest lines of a workspace: all of those behind `start`, up to `end`."""

    workspace_id: str
    start: LogCursor
    end: LogCursor
    rows: deque[LogRow] = field(default_factory=deque)
    followers: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, page: LogPage) -> None:
        """Take in what was read behind `end`, and wake whoever waits for it."""
        self.rows.extend(page.rows)
        self.end = page.edge
        while len(self.rows) > AT_HAND:
            self.start = self.rows.popleft().cursor
        if page.rows:
            self.wake()

    def wake(self) -> None:
        """Wake whoever waits; who comes later waits for the next change."""
        woken, self.changed = self.changed, asyncio.Event()
        woken.set()

    def take(self, cursor: LogCursor) -> LogPage | None:
        """Give the lines behind a place; None if some of them are not at hand any more."""
        if cursor < self.start:
            return None
        first = bisect_right(self.rows, cursor, key=lambda row: row.cursor)
        found = [self.rows[index] for index in range(first, min(len(self.rows), first + PAGE))]
        is_end = first + PAGE >= len(self.rows)
        return LogPage(found, max(cursor, self.end) if is_end else found[-1].cursor, is_end)


class LogFeeds:
    """The feeds of all workspaces that somebody follows, and the task that reads for them."""

    def __init__(self, database: Database) -> None:
        """Read from `database`; nothing is read before somebody follows."""
        self._database = database
        self._feeds: dict[str, Feed] = {}
        self._admitted: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="log-reader")
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        """Tell whether everybody who follows is asked to end."""
        return self._closing.is_set()

    @property
    def followers(self) -> int:
        """Count those who follow, or are about to."""
        return self._admitted.total()

    def close(self) -> None:
        """End all following in order. A second call changes nothing."""
        self._closing.set()
        for feed in self._feeds.values():
            feed.wake()

    @contextmanager
    def admitting(self, workspace_id: str) -> Iterator[None]:
        """Count a follower for the length of the block. Raises Refused, 503, where there are too many.

        Nothing is awaited between the look and the count, so that any number who come at once are counted.
        """
        is_full = self.followers >= FOLLOWERS_MAX or self._admitted[workspace_id] >= OF_A_WORKSPACE_MAX
        if is_full or self.is_closed:
            raise Refused(503, "as many follow the log as can; come again").retry_after(FULL_S)
        self._admitted[workspace_id] += 1
        try:
            yield
        finally:
            self._admitted[workspace_id] -= 1
            if not self._admitted[workspace_id]:
                del self._admitted[workspace_id]

    @asynccontextmanager
    async def following(self, workspace_id: str) -> AsyncIterator[Feed]:
        """Keep the feed of a workspace for the length of the block; it begins with the log's end of now."""
        if workspace_id not in self._feeds:
            end = await self.ask(partial(_end, self._database, workspace_id))
            self._feeds.setdefault(workspace_id, Feed(workspace_id, end, end))
        feed = self._feeds[workspace_id]
        feed.followers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._read())
        try:
            yield feed
        finally:
            feed.followers -= 1
            if not feed.followers:
                self._feeds.pop(workspace_id, None)

    async def page(self, query: LogQuery, cursor: LogCursor) -> LogPage:
        """Read behind a place, from SQL."""
        return await self.ask(partial(_page, self._database, query, cursor))

    async def ask(self, work: Callable[[], T]) -> T:
        """Execute what waits for SQL in one of the threads that there are for it."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _read(self) -> None:
        """Read for all feeds in turn, until nobody follows any more."""
        while self._feeds and not self.is_closed:
            pause = POLL_S
            for feed in list(self._feeds.values()):
                if not await self._read_on(feed):
                    pause = AFTER_FAULT_S
            await self._rest(pause)

    async def _read_on(self, feed: Feed) -> bool:
        try:
            feed.add(await self.page(LogQuery(feed.workspace_id), feed.end))
        except Exception as error:  # noqa: BLE001 - whoever follows would wait for a reader that has ended
            log.warning("log_not_read", reason=repr(error))
            return False
        return True

    async def _rest(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._closing.wait()
        except TimeoutError:
            return


def _page(database: Database, query: LogQuery, cursor: LogCursor) -> LogPage:
    with database.read() as conn:
        return logs_after(conn, query, cursor, most=PAGE)


def _end(database: Database, workspace_id: str) -> LogCursor:
    with database.read() as conn:
        return log_end(conn, workspace_id)
