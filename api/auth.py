"""Who asks: the key of a request, looked up anew each time, so that a revoked one is worthless at once.

What can be refused without the body is refused before it is read: by key, path, scopes, query.

A route names what its key must be allowed to do:

    Reader = Annotated[Caller, needs(Scope.RUNS_READ)]

    @router.get("/v1/things")
    def list_things(caller: Reader, backends: Served) -> ...:

The caller has the workspace of the key. Whatever is looked up for it is looked up in that workspace.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Final

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer, SecurityScopes
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from api.doors import Doors
from api.errors import Refused
from api.noting import Noting
from shared.services.authentication import KnownKey, recognize
from shared.services.backends import Backends, Caller
from shared.services.workspaces import Scope

GUARDED: Final = ("/v1/", "/v2/")
KEY_CHARS_MAX: Final = 200

_BEARER: Final = HTTPBearer(
    scheme_name="key",
    description="A key of the workspace, as `knockon keys create` makes one.",
    auto_error=False,
)


class Guarding:
    """Lets a request pass only to a route that there is; to a guarded one with a key that may call it.

    The key is put into the request's state.
    """

    def __init__(self, app: ASGIApp, backends: Backends, doors: Doors) -> None:
        """Guard `app`, whose routes are behind these doors."""
        self._app = app
        self._backends = backends
        self._doors = doors
        self._noting = Noting(backends)

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Look at all but the body. Raises Refused, 401, 403, 422, and HTTPException, 404, 405."""
        if scope["type"] == "http":
            await self._check(scope)
        await self._app(scope, receive, send)

    async def _check(self, scope: Connection) -> None:
        if not scope["path"].startswith(GUARDED):
            self._doors.find(scope)
            return
        text = key_text(Headers(scope=scope))
        found = await run_in_threadpool(recognize, self._backends.database, self._backends.clock, text)
        if found is None:
            raise _unknown("the key is none that can be used")
        self._noting.note(found)
        scope.setdefault("state", {})["key"] = found
        door = self._doors.find(scope)
        if door is not None:
            check_scopes(found, door.scopes)
            door.check_query(scope["query_string"])


async def caller_of(
    request: Request, wanted: SecurityScopes, _declared: Annotated[Any, Depends(_BEARER)]
) -> Caller:
    """Give who asks, if the key may do what is wanted. Raises Refused, 403."""
    key: KnownKey = request.state.key
    check_scopes(key, wanted.scopes)
    return key.caller


def check_scopes(key: KnownKey, wanted: Iterable[str]) -> None:
    """Let a key pass that may do all of it. Raises Refused, 403."""
    missing = [scope for scope in wanted if scope not in key.scopes]
    if missing:
        raise Refused(403, f"the key lacks the scope {', '.join(missing)}", scopes=missing)


def needs(scope: Scope) -> Any:
    """Make the dependency that gives the Caller of a key which has this scope."""
    return Security(caller_of, scopes=[scope.value])


def key_text(headers: Headers) -> str:
    """Give the key that a request shows. Raises Refused, 401."""
    scheme, _, text = headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise _unknown("send a key: Authorization: Bearer kn_live_...")
    if len(text) > KEY_CHARS_MAX:
        raise _unknown("the key is none that can be used")
    return text.strip()


def _unknown(message: str) -> Refused:
    refused = Refused(401, message)
    refused.headers["WWW-Authenticate"] = "Bearer"
    return refused
