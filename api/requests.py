"""Around every request: its id, its line in the log, errors as answers, the headers that all answers have."""

import re
from collections.abc import MutableMapping
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from api.errors import Refused, answer_for, failure, log
from shared.ids import new_id
from shared.time.clock import Clock

REQUEST_ID: Final = "X-Request-Id"
PATH_SHOWN_CHARS: Final = 200
HEADERS: Final = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)

_ID: Final = re.compile(r"[A-Za-z0-9._\-]{1,64}")


class Answering:
    """Gives every request an id and an answer, whatever happens under it."""

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        """Stand around all of `app`."""
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; anything but HTTP passes by."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _ID.fullmatch(given) else new_id()
        with bound_contextvars(request_id=request_id):
            await self._serve(scope, receive, _Sender(send, request_id))

    async def _serve(self, scope: Scope, receive: Receive, sender: "_Sender") -> None:
        begun = self._clock.monotonic()
        try:
            _check_path(scope)
            await self._app(scope, receive, sender)
        except ClientDisconnect:
            log.debug("client_left")
        except Exception as error:  # noqa: BLE001 - the place where any error becomes an answer
            await self._answer(error, scope, receive, sender)
        log.info(
            "request_answered",
            method=scope["method"],
            path=scope["path"][:PATH_SHOWN_CHARS],
            status=sender.status,
            ms=round((self._clock.monotonic() - begun) * 1000, 1),
        )

    async def _answer(self, error: Exception, scope: Scope, receive: Receive, sender: "_Sender") -> None:
        answer = answer_for(error)
        if answer is None:
            log.exception("request_failed")
            answer = failure()
        elif answer.status == 503:
            log.warning("request_not_served", reason=repr(error))
        if sender.status is None:
            await answer.response()(scope, receive, sender)
        else:
            raise error  # the answer is under way, and has to be broken off


class _Sender:
    """Sends an answer with the headers that all have, and remembers its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            _add_headers(message, self._request_id)
        await self._send(message)


def _add_headers(message: MutableMapping[str, Any], request_id: str) -> None:
    headers = MutableHeaders(scope=message)
    headers[REQUEST_ID] = request_id
    for name, value in HEADERS:
        headers.setdefault(name, value)


def _check_path(scope: Scope) -> None:
    """Refuse what no text of ours holds. Raises Refused."""
    if "\0" in scope["path"] or b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
        raise Refused(400, "a path or a query holds no NUL")
