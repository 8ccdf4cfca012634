"""The claims of requests that are being worked on here, held anew until their work is done."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from anyio import CapacityLimiter, to_thread
from sqlalchemy.exc import SQLAlchemyError

from api.errors import log
from shared.db.engine import Database
from shared.db.idempotency import Claim
from shared.services.idempotency import HELD, renew_claims
from shared.time.clock import Clock

EVERY_S: Final = HELD.total_seconds() / 3


class Renewing:
    """Renews all claims of this process together, in one task, which is there while there are any."""

    def __init__(self, database: Database, clock: Clock, every_s: float = EVERY_S) -> None:
        """Renew in this database. The thread for it is its own: routes may have taken all others."""
        self._database = database
        self._clock = clock
        self._every_s = every_s
        self._claims: set[Claim] = set()
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._thread = CapacityLimiter(1)

    @asynccontextmanager
    async def holding(self, claim: Claim) -> AsyncIterator[None]:
        """Hold a claim until the block ends; afterwards nothing renews it."""
        self._claims.add(claim)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._renew())
        try:
            yield
        finally:
            self._claims.discard(claim)
            async with self._turn:
                self._rest()

    def _rest(self) -> None:
        if self._task is not None and not self._claims:
            self._task.cancel()
            self._task = None

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            async with self._turn:
                await self._renew_all(tuple(self._claims))

    async def _renew_all(self, claims: tuple[Claim, ...]) -> None:
        try:
            await to_thread.run_sync(renew_claims, self._database, self._clock, claims, limiter=self._thread)
        except (SQLAlchemyError, OSError) as fault:
            log.warning("claims_not_renewed", count=len(claims), reason=repr(fault))
