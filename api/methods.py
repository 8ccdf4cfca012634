"""HEAD and OPTIONS, for every path alike: HEAD is GET without the body, OPTIONS names what can be done."""

from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Methods:
    """Answers OPTIONS, and makes GET of HEAD."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        match scope["method"]:
            case "OPTIONS":
                await _options(scope)(scope, receive, send)
            case "HEAD":
                headless = _Headless(receive, send)
                await self._app({**scope, "method": "GET"}, headless.receive, headless.send)
            case _:
                await self._app(scope, receive, send)


def _options(scope: Scope) -> Response:
    allowed = allowed_methods(scope)
    if not allowed:
        raise HTTPException(404)
    return Response(status_code=204, headers={"Allow": allowed})


class _Headless:
    """Sends the headers of an answer; whoever writes the body is told that nobody listens."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._is_over = False

    async def receive(self) -> Message:
        return {"type": "http.disconnect"} if self._is_over else await self._receive()

    async def send(self, message: Message) -> None:
        if self._is_over:
            return
        await self._send(message)
        if message["type"] == "http.response.start":
            self._is_over = True
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def allowed_methods(scope: Scope) -> str:
    """Name the methods of a path, or nothing where there is no such path."""
    routes: list[Any] = scope["app"].routes
    found = [
        method
        for method in METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    if "GET" in found:
        found.insert(1, "HEAD")
    return ", ".join([*found, "OPTIONS"]) if found else ""
