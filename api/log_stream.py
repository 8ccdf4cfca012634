"""An answer that does not end: lines of the log as server-sent events, each with its place as its id.

It ends in order when the server is asked to end, when the key was revoked, or when SQL does not answer; it is
broken off where the caller reads too slowly. Whoever follows comes again with the last id that was seen.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.log_feed import Feed, LogFeeds
from api.log_lines import LogOut
from shared.db.log_reads import LogCursor, LogPage, LogQuery
from shared.logs import get_logger

HEARTBEAT_S: Final = 15.0
SENT_WITHIN_S: Final = 30.0
CHUNK_BYTES: Final = 32_768
RETRY_MS: Final = 2_000
HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),  # a proxy must not collect what is meant to be seen at once
)

log: Final = get_logger("api")


@dataclass(frozen=True, slots=True)
class Following:
    """What a caller follows, and from which place on; `is_welcome` asks whether the key may still do so."""

    query: LogQuery
    place: LogCursor
    is_welcome: Callable[[], bool]
    heartbeat_s: float = HEARTBEAT_S
    sent_within_s: float = SENT_WITHIN_S


@dataclass(slots=True)
class _Pipe:
    """One caller: where it stands, how to send, and whether it is still there."""

    send: Send
    place: LogCursor
    gone: asyncio.Future[None]
    sent_within_s: float
    due_s: float = 0.0

    async def write(self, text: str) -> None:
        """Send a piece. Raises TimeoutError for a caller that takes nothing for too long."""
        message = {"type": "http.response.body", "body": text.encode(), "more_body": True}
        async with asyncio.timeout(self.sent_within_s):
            await self.send(message)

    @property
    def left_s(self) -> float:
        """How long until the key has to be looked at again."""
        return self.due_s - asyncio.get_running_loop().time()


class LogStream(Response):
    """Sends what is behind a place of the log, then what is written, until somebody ends it."""

    def __init__(self, feeds: LogFeeds, wanted: Following) -> None:
        """Follow what is `wanted`."""
        super().__init__(status_code=200)
        self._feeds = feeds
        self._wanted = wanted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream. Raises Refused where too many follow already."""
        with self._feeds.admitting(self._wanted.query.workspace_id):
            await self._stream(receive, send)

    async def _stream(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
        gone = asyncio.ensure_future(_left(receive))
        pipe = _Pipe(send, self._wanted.place, gone, self._wanted.sent_within_s)
        try:
            await pipe.write(f"retry: {RETRY_MS}\n\n")
            async with self._feeds.following(self._wanted.query.workspace_id) as feed:
                await self._follow(feed, pipe)
        except TimeoutError:
            log.warning("slow_follower_dropped", place=str(pipe.place))
            return
        except SQLAlchemyError as error:
            log.warning("following_ended", reason=type(error).__name__)
        finally:
            gone.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(self, feed: Feed, pipe: _Pipe) -> None:
        self._put_off(pipe)
        while not (self._feeds.is_closed or pipe.gone.done()):
            changed = feed.changed
            page = feed.take(pipe.place) or await self._feeds.page(self._wanted.query, pipe.place)
            for piece in _pieces(page, self._wanted.query):
                if not await self._may_go_on(pipe):
                    return
                await pipe.write(piece)
            pipe.place = page.edge
            if page.is_end:
                await self._wait(changed, pipe)
            if pipe.left_s <= 0:
                if not await self._may_go_on(pipe):
                    return
                await pipe.write(f": here\nid: {pipe.place}\n\n")

    async def _wait(self, changed: asyncio.Event, pipe: _Pipe) -> None:
        """Wait for news, but no longer than the key may stay unlooked at."""
        woken: asyncio.Future[Any] = asyncio.ensure_future(changed.wait())
        either: set[asyncio.Future[Any]] = {woken, pipe.gone}
        await asyncio.wait(either, timeout=max(0.0, pipe.left_s), return_when=asyncio.FIRST_COMPLETED)
        woken.cancel()

    async def _may_go_on(self, pipe: _Pipe) -> bool:
        """Ask by the clock, however much there is to send, whether the key may still be shown anything."""
        if pipe.left_s > 0:
            return True
        self._put_off(pipe)
        return await self._feeds.ask(self._wanted.is_welcome)

    def _put_off(self, pipe: _Pipe) -> None:
        pipe.due_s = asyncio.get_running_loop().time() + self._wanted.heartbeat_s


def _pieces(page: LogPage, query: LogQuery) -> Iterator[str]:
    """Write the lines that fit, a few at a time: what waits to be sent is held in memory."""
    piece = ""
    for row in page.rows:
        if not query.fits(row):
            continue
        piece += f"id: {row.cursor}\nevent: log\ndata: {LogOut.of(row).model_dump_json()}\n\n"
        if len(piece) >= CHUNK_BYTES:
            yield piece
            piece = ""
    if piece:
        yield piece


async def _left(receive: Receive) -> None:
    """End when the caller has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
