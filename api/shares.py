"""How many requests of one kind are worked on at a time, so that no kind and no workspace takes every thread.

What is not listed here, reading rows, has the threads that are left over, whoever else waits for a server
that hangs, for SQLite's turn to write, or works through thousands of events (docs/api.md, "At a time").
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import Refused
from shared.logs import get_logger
from shared.services.authentication import KnownKey

AGAIN_S: Final = 5
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_LOOKS: Final = re.compile(r"/v1/events/[^/]*/explain|/v1/automations/[^/]*/dry-run")

log: Final = get_logger("api")


@dataclass(frozen=True, slots=True)
class Size:
    """How many at a time, of a process and of a workspace in it, and how long another waits for its turn."""

    most: int
    of_a_workspace: int
    wait_s: float


class Share(Enum):
    """The kinds of requests that have a share of the threads."""

    BACKTESTS = Size(2, 1, 0.0)
    LOOKS = Size(4, 2, 5.0)
    WRITES = Size(20, 10, 5.0)  # and what reads the stream: all that waits for Redis, or for a turn to write


def share_of(method: str, path: str) -> Share | None:
    """Tell the share of a request; None for one that only reads rows."""
    if method == "POST" and path == "/v1/backtests":
        return Share.BACKTESTS
    if _LOOKS.fullmatch(path):
        return Share.LOOKS
    if method not in READING or path == "/v1/events" or path.startswith("/v1/events/"):
        return Share.WRITES
    return None


class Turns:
    """The turns of one share. Everything here runs on the loop of the server."""

    def __init__(self, size: Size) -> None:
        """Have all turns free."""
        self._size = size
        self._taken: Counter[str] = Counter()
        self._freed = asyncio.Event()

    async def take(self, workspace_id: str) -> None:
        """Wait for a turn. Raises Refused, 429 where the workspace has its own, 503 where all are taken."""
        try:
            async with asyncio.timeout(self._size.wait_s):
                while self._is_full(workspace_id):
                    await self._freed.wait()
        except TimeoutError:
            raise self._refusal(workspace_id) from None
        self._taken[workspace_id] += 1

    def give_back(self, workspace_id: str) -> None:
        """Let another have the turn."""
        self._taken[workspace_id] -= 1
        if not self._taken[workspace_id]:
            del self._taken[workspace_id]
        freed, self._freed = self._freed, asyncio.Event()
        freed.set()

    def _is_full(self, workspace_id: str) -> bool:
        return self._taken.total() >= self._size.most or self._has_own(workspace_id)

    def _has_own(self, workspace_id: str) -> bool:
        return self._taken[workspace_id] >= self._size.of_a_workspace

    def _refusal(self, workspace_id: str) -> Refused:
        own = self._has_own(workspace_id)
        log.warning("turn_refused", workspace_id=workspace_id, taken=self._taken.total())
        status, whose = (429, "of this workspace") if own else (503, "of all workspaces")
        return Refused(
            status, f"as many requests like this {whose} as can be are being worked on"
        ).retry_after(AGAIN_S)


class Sharing:
    """Lets a request pass when it is its turn; the turn is over when the answer begins."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`, behind what knows the caller."""
        self._app = app
        self._turns = {share: Turns(share.value) for share in Share}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises Refused, 429 and 503."""
        key: KnownKey | None = scope.get("state", {}).get("key")
        share = None if key is None else share_of(scope["method"], scope["path"])
        if key is None or share is None:
            await self._app(scope, receive, send)
            return
        async with self._turn(self._turns[share], key.caller.workspace_id) as turn:
            await self._app(scope, receive, _Ending(send, turn))

    @asynccontextmanager
    async def _turn(self, turns: Turns, workspace_id: str) -> AsyncIterator["_Turn"]:
        await turns.take(workspace_id)
        turn = _Turn(turns, workspace_id)
        try:
            yield turn
        finally:
            turn.end()


class _Turn:
    """One turn, which ends once."""

    def __init__(self, turns: Turns, workspace_id: str) -> None:
        self._turns = turns
        self._workspace_id = workspace_id
        self._is_over = False

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._turns.give_back(self._workspace_id)


class _Ending:
    """Sends an answer, and ends the turn before: a caller that reads slowly holds nobody else up."""

    def __init__(self, send: Send, turn: _Turn) -> None:
        self._send = send
        self._turn = turn

    async def __call__(self, message: Message) -> None:
        self._turn.end()
        await self._send(message)
