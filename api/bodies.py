"""The door for bodies: bounded in size, time and number, and JSON only in the shape that we can hold.

What passes has no duplicate keys, no NaN, no integer beyond 64 bits and no text that a database refuses
(`shared/model/json_limits`); a route's model checks the rest. A route that reads bytes takes `RawBody`.
"""

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import orjson
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import Refused
from api.held_bytes import HeldBytes
from shared.errors import BadEvent
from shared.model.json_limits import read_object

BODY_BYTES_MAX: Final = 1_048_576
EVENTS_BYTES_MAX: Final = 16_777_216
BODY_WITHIN_S: Final = 60.0
SPARE: Final = 20  # levels and values around a payload
WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})

# Paths whose route reads the bytes itself.
RAW: Final[Mapping[str, int]] = MappingProxyType({"/v1/events": EVENTS_BYTES_MAX})


class Bodies:
    """Reads the body of a write whole, checks it, and puts it into the request's state."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`."""
        self._app = app
        self._held = HeldBytes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises Refused for a body that cannot be taken."""
        if scope["type"] != "http" or scope["method"] not in WITH_BODY:
            await self._app(scope, receive, send)
            return
        key = scope.get("state", {}).get("key")
        with self._held.holding(key.caller.workspace_id if key else "") as take:
            await self._serve(scope, _Counted(receive, take), send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        most = RAW.get(scope["path"], BODY_BYTES_MAX)
        headers = Headers(scope=scope)
        try:
            async with asyncio.timeout(BODY_WITHIN_S):
                body = await _read(headers, receive, most)
        except TimeoutError:
            raise Refused(408, f"the body did not come within {BODY_WITHIN_S:.0f} s") from None
        if body and scope["path"] not in RAW:
            body = _checked(headers, body)
        scope.setdefault("state", {})["body"] = body
        await self._app(scope, _Again(body, receive), send)


class _Counted:
    """Receives what is sent, and counts it before it is kept."""

    def __init__(self, receive: Receive, take: Callable[[int], None]) -> None:
        self._receive = receive
        self._take = take

    async def __call__(self) -> Message:
        message = await self._receive()
        self._take(len(message.get("body", b"")))
        return message


class _Again:
    """Gives a body that was read once more, then whatever comes after it."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _read(headers: Headers, receive: Receive, most: int) -> bytes:
    if int(headers.get("Content-Length") or 0) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(most)
        if not message.get("more_body"):
            return b"".join(parts)


def _checked(headers: Headers, body: bytes) -> bytes:
    """Give the body as the rest may read it: mended where some text could not be stored."""
    kind = media_type(headers)
    if kind != "application/json" and not kind.endswith("+json"):
        raise Refused(415, "send JSON, with Content-Type: application/json")
    try:
        found = read_object("body", body, spare=SPARE)
    except BadEvent as error:
        raise Refused(400, f"the body {error.reason}") from error
    return orjson.dumps(found.value) if found.sanitized else body


def media_type(headers: Headers) -> str:
    """Give the type of a body, without parameters."""
    return headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _too_large(most: int) -> Refused:
    return Refused(413, f"the body is larger than {most:,} bytes", most_bytes=most)
