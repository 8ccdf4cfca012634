"""Idempotency-Key: a write that comes twice is done once, and answered alike (docs/api.md, Idempotency).

The answer of a write that succeeded is kept for 24 hours, unless it holds what is shown once. One that failed
has changed nothing and is forgotten, so that the next one under its key is worked on anew. After a 5xx the
key goes on to stand for the request: nobody knows how far it came.
"""

import re
import sys
from collections.abc import Mapping
from hashlib import sha256
from math import ceil
from typing import Final

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.bodies import WITH_BODY
from api.errors import Refused, answer_for, log, refused_at
from api.renewing import Renewing
from shared.db.idempotency import Claim, KeptAnswer
from shared.errors import ConfigError
from shared.faults import FaultPoint, passed
from shared.ids import new_id
from shared.sealing import Unreadable
from shared.secrets import make_seal
from shared.services.backends import Backends
from shared.services.idempotency import (
    AnswerLost,
    OtherRequest,
    Standing,
    Working,
    answer_claim,
    claim_key,
    drop_claim,
    leave_claim,
)
from shared.settings import Settings

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
KEPT_BYTES_MAX: Final = 1_048_576
KEPT_HEADERS: Final = ("content-type", "etag", "location")
TELLING_HEADERS: Final = ("content-type", "if-match")

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


class Repeating:
    """Works on a write under a key at most once; a repeat gets the first one's answer."""

    def __init__(self, app: ASGIApp, settings: Settings, backends: Backends) -> None:
        """Stand before `app`, behind what knows the caller and the body."""
        self._app = app
        self._settings = settings
        self._backends = backends
        self._renewing = Renewing(backends.database, backends.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises Refused where its key stands against it."""
        if scope["type"] != "http" or scope["method"] not in WITH_BODY or "key" not in scope.get("state", {}):
            await self._app(scope, receive, send)
            return
        key = Headers(scope=scope).get(HEADER)
        if key is None:
            await self._app(scope, receive, send)
            return
        wanted = self._claim(scope, key)
        standing = await run_in_threadpool(claim_key, self._backends.database, self._backends.clock, wanted)
        if isinstance(standing, Claim):
            await self._work(standing, scope, receive, send)
            return
        response = await run_in_threadpool(self._replay, standing)
        await response(scope, receive, send)

    def _claim(self, scope: Scope, key: str) -> Claim:
        if not _KEY.fullmatch(key):
            raise refused_at(HEADER, "must be 1 to 255 visible characters of ASCII")
        return Claim(scope["state"]["key"].id, key, _fingerprint(scope), new_id(), self._backends.clock.now())

    async def _work(self, claim: Claim, scope: Scope, receive: Receive, send: Send) -> None:
        passed(FaultPoint.REQUEST_AFTER_CLAIM)
        scope["state"]["claim"] = claim
        answer = _Kept()
        try:
            async with self._renewing.holding(claim):
                await self._app(scope, receive, answer)
        finally:
            passed(FaultPoint.REQUEST_BEFORE_ANSWER)
            answer.is_shown_once = "shown_once" in scope["state"]
            await run_in_threadpool(self._settle, claim, answer, sys.exception())
            passed(FaultPoint.REQUEST_AFTER_ANSWER)
        for message in answer.messages:
            await send(message)

    def _settle(self, claim: Claim, answer: "_Kept", error: BaseException | None) -> None:
        """Keep the answer of a write that succeeded, else let go. A failure here undoes no work."""
        database = self._backends.database
        try:
            if answer.is_success and answer.is_shown_once:
                leave_claim(database, self._backends.clock, claim)
            elif answer.is_success and len(answer.body) <= KEPT_BYTES_MAX:
                sealed = make_seal(self._settings).close(answer.body.decode())
                answer_claim(database, claim, KeptAnswer(answer.status, answer.headers, sealed))
            elif _is_refused(answer, error):
                drop_claim(database, self._backends.clock, claim)
            else:
                leave_claim(database, self._backends.clock, claim)
        except (SQLAlchemyError, ConfigError, OSError) as fault:
            log.warning("answer_not_kept", reason=repr(fault))

    def _replay(self, standing: Standing) -> Response:
        match standing:
            case KeptAnswer():
                return self._kept(standing)
            case Working():
                wait_s = max(1, ceil(standing.wait.total_seconds()))
                raise Refused(409, "this request is being worked on").coded("in_progress").retry_after(wait_s)
            case OtherRequest():
                message = f"the {HEADER} was used for another request"
                raise Refused(409, message).coded("idempotency_key_reused")
            case AnswerLost() | _:
                message = "this request was carried out, but its answer is not kept; read what it changed"
                raise Refused(409, message).coded("answer_lost")

    def _kept(self, answer: KeptAnswer) -> Response:
        try:
            body = make_seal(self._settings).open(answer.body)
        except Unreadable:
            return self._replay(AnswerLost())
        return Response(body, answer.status, {**answer.headers, REPLAYED: "true"})


class _Kept:
    """Holds an answer back until it is stored."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.is_shown_once = False

    async def __call__(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        status: int = self.messages[0]["status"]
        return status

    @property
    def is_success(self) -> bool:
        return bool(self.messages) and self.status < 400

    @property
    def headers(self) -> dict[str, str]:
        found = MutableHeaders(scope=self.messages[0])
        return {name: found[name] for name in KEPT_HEADERS if name in found}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])


def _is_refused(answer: _Kept, error: BaseException | None) -> bool:
    """Tell whether a write was turned down before it changed anything; after a 5xx nobody knows."""
    if error is None:
        return bool(answer.messages) and answer.status < 500
    found = answer_for(error) if isinstance(error, Exception) else None
    return found is not None and found.status < 500


def _fingerprint(scope: Scope) -> str:
    """Tell requests apart: by what is asked of which path, for which state, with which body."""
    headers: Mapping[str, str] = Headers(scope=scope)
    told = [scope["method"], scope["path"], scope["query_string"].decode("latin-1")]
    told += [f"{name}:{value}" for name, value in sorted(headers.items()) if _is_telling(name)]
    return sha256("\n".join(told).encode() + b"\n\n" + scope["state"]["body"]).hexdigest()


def _is_telling(name: str) -> bool:
    return name in TELLING_HEADERS or name.startswith("ce-")
