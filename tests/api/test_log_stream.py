"""The log followed over HTTP: no hole, nothing twice, and an end in order, whoever is slow or leaves."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import dropwhile
from typing import Any

import orjson
import pytest
from sqlalchemy.exc import TimeoutError as PoolExhausted
from starlette.types import Message

from api.errors import Refused
from api.log_feed import AT_HAND, OF_A_WORKSPACE_MAX, Feed, LogFeeds
from api.log_stream import Following, LogStream
from knockon.log_following import Api as Address
from knockon.log_following import ApiRefused, Event, Follower, Trouble, read_events
from shared.db.engine import Database
from shared.db.history import RunLog, insert_logs
from shared.db.log_reads import START, LogCursor, LogPage, LogQuery, LogRow
from shared.model.runs import LogLine
from shared.process import StopFlag
from shared.services.backends import Caller
from shared.services.workspaces import Scope, revoke_key
from tests.calling import Api
from tests.people import NOW
from tests.waiting import poll


def write(database: Database, *messages: str, level: str = "info", **of: Any) -> None:
    """Write lines in one transaction."""
    workspace = of.get("workspace", "w1")
    lines = [
        RunLog(workspace, of.get("automation"), of.get("run"), LogLine(level, message, of.get("at", NOW)))
        for message in messages
    ]
    with database.begin() as conn:
        insert_logs(conn, lines)


class Reading:
    """A follower of an API whose lines a test looks at."""

    def __init__(self, api: Api, key: str, place: str | None = None, **asked: str) -> None:
        self.stop = StopFlag()
        self.lines: list[dict[str, Any]] = []
        self.troubles: list[str] = []
        follower = Follower(Address(api.url, key), asked, place, self.stop)
        self.thread = threading.Thread(target=self._read, args=(follower,), daemon=True)
        self.thread.start()

    def _read(self, follower: Follower) -> None:
        try:
            for found in follower.lines():
                if isinstance(found, Trouble):
                    self.troubles.append(found.reason)
                else:
                    self.lines.append(dict(found))
        except ApiRefused as error:
            self.troubles.append(str(error))

    def messages(self) -> list[str]:
        return [line["message"] for line in self.lines]

    def await_messages(self, *messages: str) -> None:
        poll(lambda: self.messages() == list(messages))


@pytest.fixture
def key(api: Api) -> str:
    return api.key(Scope.RUNS_READ)


@pytest.fixture
def follow(api: Api, key: str) -> Iterator[Callable[..., Reading]]:
    """Follow the log of w1; every follower ends with the test."""
    made: list[Reading] = []

    def begin(place: str | None = None, **asked: str) -> Reading:
        made.append(Reading(api, key, place, **asked))
        return made[-1]

    yield begin
    for reading in made:
        reading.stop.raise_()
        reading.thread.join(10)


def test_lines_come_as_they_are_written_and_as_the_list_shows_them(
    api: Api, key: str, follow: Callable[..., Reading]
) -> None:
    write(api.backends.database, "before")
    listed = api("GET", "/v1/logs", key=key).json()
    reading = follow(listed["as_of"])
    for number in range(3):
        write(api.backends.database, f"line {number}", workspace="w1")
        write(api.backends.database, "another's", workspace="w2")
    reading.await_messages("line 0", "line 1", "line 2")
    assert reading.lines == api("GET", "/v1/logs?limit=3", key=key).json()["items"][::-1]
    assert [line["message"] for line in listed["items"]] == ["before"]


def test_whoever_comes_again_gets_what_was_missed_and_nothing_twice(
    api: Api, follow: Callable[..., Reading]
) -> None:
    write(api.backends.database, *(f"line {number}" for number in range(5)))
    first = follow("0-0")
    poll(lambda: len(first.lines) == 5)
    again = follow(first.lines[1]["id"])
    again.await_messages("line 2", "line 3", "line 4")
    write(api.backends.database, "line 5")
    again.await_messages("line 2", "line 3", "line 4", "line 5")


def test_only_what_is_asked_for_comes(api: Api, key: str, follow: Callable[..., Reading]) -> None:
    rows = [("info", None, "r1"), ("warning", "a1", "r1"), ("error", "a1", "r2")]
    for level, automation, run in rows:
        write(api.backends.database, f"{level} {run}", level=level, automation=automation, run=run)
    early = (NOW - timedelta(hours=3)).isoformat()[:19] + "Z"
    asked = [{"run": "r1"}, {"level": "warning", "from": early}, {"from": early, "to": early}]
    readings = [follow(**each) for each in asked]
    readings[0].await_messages("info r1", "warning r1")
    readings[1].await_messages("warning r1", "error r2")
    for level, automation, run in rows:
        write(api.backends.database, f"new {level}", level=level, automation=automation, run=run)
    readings[0].await_messages("info r1", "warning r1", "new info", "new warning")
    readings[1].await_messages("warning r1", "error r2", "new warning", "new error")
    assert readings[2].lines == []


def test_the_list_pages_in_both_orders_and_filters(api: Api, key: str) -> None:
    write(api.backends.database, *(f"line {number}" for number in range(5)))
    write(api.backends.database, "loud", level="error")

    def listed(query: str) -> list[str]:
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = api(
                "GET", f"/v1/logs?limit=2&{query}" + (f"&cursor={cursor}" if cursor else ""), key=key
            ).json()
            found += [line["message"] for line in page["items"]]
            cursor = page["next"]
        return found

    everything = [*(f"line {number}" for number in range(5)), "loud"]
    assert listed("") == everything[::-1]
    assert listed("order=asc") == everything
    assert listed("order=asc&level=warning") == ["loud"]
    assert listed("level=error&from=2026-03-01T12:00:00Z") == ["loud"]
    assert listed("to=2026-03-01T12:00:00Z") == []
    for query, field in (("level=loud", "level"), ("order=up", "order"), ("cursor=WyJ4Il0", "cursor")):
        assert api("GET", f"/v1/logs?{query}", key=key).json()["details"]["field"] == field


@pytest.mark.parametrize(("given", "status"), [({"after": "x"}, 422), ({"automation": "nothing"}, 404)])
def test_a_stream_that_cannot_be_is_refused_like_any_request(
    api: Api, follow: Callable[..., Reading], given: dict[str, str], status: int
) -> None:
    reading = follow(**given)
    poll(lambda: reading.troubles)
    assert f"the API answers {status}" in reading.troubles[0]
    assert api("GET", "/v1/logs/stream", key=api.key(Scope.EVENTS_READ)).status_code == 403


def test_a_line_with_odd_separators_comes_whole(api: Api, follow: Callable[..., Reading]) -> None:
    odd = "a\u2028b\x85c\x0bd\r\ne: f"
    write(api.backends.database, odd)
    follow("0-0").await_messages(odd)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_read_however_the_stream_is_cut(size: int) -> None:
    text = b"retry: 2000\n\nid: 1-1\nevent: log\ndata: {}\n\n: here\nid: 1-2\n\nid: 1-3\nda"
    chunks = [text[first : first + size] for first in range(0, len(text), size)]
    assert list(read_events(chunks)) == [Event("1-1", "{}"), Event("1-2", "")]


class Line:
    """A caller without a network: what was sent to it, and how it leaves or stands still."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.left = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.takes.wait()
        self.sent.append(message)

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent).decode()

    @property
    def ended(self) -> bool:
        return self.sent[-1].get("more_body") is False


async def until(predicate: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not predicate():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def streaming(
    feeds: LogFeeds, line: Line, place: LogCursor = START, **given: Any
) -> AsyncIterator[asyncio.Task[None]]:
    query = LogQuery(given.pop("workspace", "w1"), level=given.pop("level", None))
    wanted = Following(query, place, given.pop("is_welcome", lambda: True), **given)
    task = asyncio.create_task(LogStream(feeds, wanted)({"type": "http"}, line.receive, line.send))
    yield task
    line.left.set()
    line.takes.set()
    await asyncio.wait_for(task, 10)


def test_a_quiet_stream_shows_that_it_is_there_and_how_far_it_came(api: Api) -> None:
    write(api.backends.database, "one")

    async def quiet() -> str:
        feeds, line = LogFeeds(api.backends.database), Line()
        async with streaming(feeds, line, heartbeat_s=0.05):
            await until(lambda: line.text.partition("event:")[2].count(": here") >= 2)
        feeds.close()
        return line.text

    told = asyncio.run(quiet())
    event, *quiets = dropwhile(lambda each: not each.data, read_events([told.encode()]))
    assert orjson.loads(event.data)["message"] == "one"
    assert {each.id for each in quiets} == {event.id}


def test_a_caller_that_takes_nothing_is_dropped_and_holds_nothing(api: Api) -> None:
    async def stuck() -> tuple[bool, bool]:
        feeds, line = LogFeeds(api.backends.database), Line()
        async with streaming(feeds, line, sent_within_s=0.1) as task:
            await until(lambda: feeds.followers == 1)
            line.takes.clear()
            write(api.backends.database, "never taken")
            await until(task.done)
            left = feeds.followers == 0
        feeds.close()
        return left, line.ended

    assert asyncio.run(stuck()) == (True, False)


@pytest.mark.parametrize("how", ["closed", "left", "revoked"])
def test_a_stream_ends_when_it_should(api: Api, how: str) -> None:
    async def ending() -> tuple[int, bool]:
        feeds, line = LogFeeds(api.backends.database), Line()
        welcome = how != "revoked"
        async with streaming(feeds, line, heartbeat_s=0.05, is_welcome=lambda: welcome) as task:
            if how == "closed":
                await until(lambda: feeds.followers == 1)
                feeds.close()
            if how == "left":
                line.left.set()
            await until(task.done)
        feeds.close()
        return feeds.followers, line.ended

    assert asyncio.run(ending()) == (0, True)


class Chatter:
    """Somebody who writes one line after the other, so that a stream is never quiet."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stop = StopFlag()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.raise_()
        self._thread.join(10)

    def _write(self) -> None:
        while not self._stop.wait(0.01):
            write(self._database, "and another")


def test_a_busy_stream_ends_soon_after_its_key_was_revoked(api: Api) -> None:
    async def busy() -> bool:
        feeds, line = LogFeeds(api.backends.database), Line()
        async with streaming(feeds, line, heartbeat_s=0.3, is_welcome=lambda: False) as task:
            await until(task.done)
        feeds.close()
        return line.ended

    with Chatter(api.backends.database):
        assert asyncio.run(busy())


def test_a_stream_whose_filters_leave_all_out_shows_that_it_is_there(api: Api) -> None:
    async def busy() -> str:
        feeds, line = LogFeeds(api.backends.database), Line()
        async with streaming(feeds, line, heartbeat_s=0.5, level="error"):
            await until(lambda: line.text.count(": here") >= 2)
        feeds.close()
        return line.text

    with Chatter(api.backends.database):
        told = asyncio.run(busy())
    assert "and another" not in told


def test_the_reader_goes_on_after_whatever_error(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stumbling() -> str:
        feeds, line = LogFeeds(api.backends.database), Line()
        read, failed = feeds.page, asyncio.Event()

        async def fail_once(query: LogQuery, cursor: LogCursor) -> LogPage:
            if not failed.is_set() and feeds._feeds:
                failed.set()
                raise PoolExhausted("no connection in time")
            return await read(query, cursor)

        async with streaming(feeds, line):
            await until(lambda: feeds._feeds)
            monkeypatch.setattr(feeds, "page", fail_once)
            await until(failed.is_set)
            write(api.backends.database, "after it")
            await until(lambda: "after it" in line.text)
        feeds.close()
        return line.text

    assert "after it" in asyncio.run(stumbling())


def test_so_many_follow_a_workspace_and_no_more_however_they_come(api: Api) -> None:
    async def crowd() -> tuple[int, int, int]:
        feeds = LogFeeds(api.backends.database)
        lines = [Line() for _ in range(OF_A_WORKSPACE_MAX + 10)]
        tasks = [
            asyncio.create_task(
                LogStream(feeds, Following(LogQuery("w1"), START, lambda: True))(
                    {"type": "http"}, line.receive, line.send
                )
            )
            for line in lines
        ]
        await until(lambda: sum(task.done() for task in tasks) == 10)
        followers, other = feeds.followers, Line()
        async with streaming(feeds, other, workspace="w2"):
            pass
        feeds.close()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        return followers, sum(isinstance(end, Refused) for end in ends), feeds.followers

    assert asyncio.run(crowd()) == (OF_A_WORKSPACE_MAX, 10, 0)


def test_a_place_beyond_the_end_begins_at_the_end(api: Api, follow: Callable[..., Reading]) -> None:
    write(api.backends.database, "before")
    reading = follow("9000000000000000-1")
    with Chatter(api.backends.database):
        poll(reading.messages)
    assert "before" not in reading.messages()


def test_a_revoked_key_follows_no_more(api: Api) -> None:
    made = api.key(Scope.RUNS_READ)
    listed = api("GET", "/v1/api-keys", key=api.key()).json()["items"]
    (key_id,) = [each["id"] for each in listed if each["last4"] == made[-4:]]
    revoke_key(api.backends.database, api.backends.clock, Caller("w1", "USER cli:anna"), key_id)
    assert api("GET", "/v1/logs/stream", key=made).status_code == 401


def row(place: int) -> LogRow:
    return LogRow(LogCursor(0, place), None, None, None, "info", f"line {place}", None, NOW)


def test_a_feed_keeps_the_newest_lines_and_says_where_they_begin() -> None:
    feed = Feed("w1", LogCursor(0, 10), LogCursor(0, 10))
    rows = [row(place) for place in range(11, 11 + AT_HAND + 5)]
    feed.add(LogPage(rows, rows[-1].cursor, is_end=True))
    assert (len(feed.rows), feed.start) == (AT_HAND, LogCursor(0, 15))
    assert feed.take(LogCursor(0, 14)) is None
    found: list[LogRow] = []
    cursor = feed.start
    while (page := feed.take(cursor)) is not None and page.rows:
        found += page.rows
        cursor = page.edge
    assert found == rows[5:]
    ahead = feed.take(LogCursor(0, 10**9))
    assert ahead == LogPage([], LogCursor(0, 10**9), is_end=True)
