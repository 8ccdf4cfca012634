"""Following the log of runs over HTTP: server-sent events, and the way back after the API was away.

Whoever connects again names the last id that was seen, so that no line is lost or comes twice (docs/api.md,
"Following the log").
"""

import queue
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import orjson

from shared.errors import KnockonError
from shared.process import StopFlag

STREAM: Final = "/v1/logs/stream"
CONNECT_S: Final = 10.0
SILENT_S: Final = 40.0  # the API shows that it is there every 15 s
PAUSES_S: Final = (0.25, 0.5, 1.0, 2.0)
WAITING_MAX: Final = 1_000
LOOK_S: Final = 0.25
AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})


class ApiRefused(KnockonError):
    """The API does not answer what was asked; asking again would not help."""


@dataclass(frozen=True, slots=True)
class Api:
    """Where the API is, and the key to it."""

    url: str
    key: str

    def client(self) -> httpx2.Client:
        """Make a client of it."""
        timeout = httpx2.Timeout(CONNECT_S, read=SILENT_S)
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=timeout)


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event. Without data it only tells how far the stream has come."""

    id: str
    data: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """The API was away; `pause_s` until it is asked again."""

    reason: str
    pause_s: float


def read_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Read events out of a stream as it comes, cut anywhere; what stands behind the last one is left out."""
    held = b""
    fields: dict[bytes, bytes] = {}
    for chunk in chunks:
        *lines, held = (held + chunk).split(b"\n")
        for line in lines:
            if line:
                name, _, value = line.partition(b": ")
                fields[name] = value
                continue
            if b"id" in fields:
                yield Event(fields[b"id"].decode(), fields.get(b"data", b"").decode())
            fields = {}


class Follower:
    """Reads the stream in a thread of its own, so that whoever prints can end at once."""

    def __init__(self, api: Api, asked: Mapping[str, str], place: str | None, stop: StopFlag) -> None:
        """Follow what is asked, from a place on."""
        self._api = api
        self._asked = asked
        self._place = place
        self._stop = stop
        self._seen: queue.Queue[Mapping[str, Any] | Trouble | ApiRefused] = queue.Queue(WAITING_MAX)

    def lines(self) -> Iterator[Mapping[str, Any] | Trouble]:
        """Give lines as they are written, and troubles as they come, until the stop. Raises ApiRefused."""
        threading.Thread(target=self._read, name="log-follower", daemon=True).start()
        while not self._stop.is_raised():
            try:
                found = self._seen.get(timeout=LOOK_S)
            except queue.Empty:
                continue
            if isinstance(found, ApiRefused):
                raise found
            yield found

    def _read(self) -> None:
        failures = 0
        with self._api.client() as client:
            while not self._stop.is_raised():
                place = self._place
                try:
                    self._read_once(client)
                    reason = "the stream ended"
                except ApiRefused as error:
                    self._put(error)
                    return
                except httpx2.HTTPError as error:
                    reason = str(error) or type(error).__name__
                failures = 0 if place != self._place else min(failures + 1, len(PAUSES_S) - 1)
                pause_s = PAUSES_S[failures]
                self._put(Trouble(reason, pause_s))
                self._stop.wait(pause_s)

    def _read_once(self, client: httpx2.Client) -> None:
        headers = {} if self._place is None else {"Last-Event-ID": self._place}
        with client.stream("GET", STREAM, params=dict(self._asked), headers=headers) as response:
            check_answer(response)
            for event in read_events(response.iter_bytes()):
                if event.data:
                    self._put(orjson.loads(event.data))
                self._place = event.id

    def _put(self, found: Mapping[str, Any] | Trouble | ApiRefused) -> None:
        while not self._stop.is_raised():
            try:
                self._seen.put(found, timeout=LOOK_S)
            except queue.Full:
                continue
            return


def check_answer(response: httpx2.Response) -> None:
    """Raise ApiRefused for an answer that asking again would not change, HTTPStatusError for others."""
    if response.status_code == 200:
        return
    response.read()
    if response.status_code in AGAIN:
        raise httpx2.HTTPStatusError(
            f"the API answers {response.status_code}", request=response.request, response=response
        )
    try:
        message = str(orjson.loads(response.content)["message"])
    except (ValueError, KeyError, TypeError):
        message = "and says nothing that can be read; is this the API?"
    raise ApiRefused(f"the API answers {response.status_code}: {message}")
