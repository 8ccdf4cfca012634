"""A look at a server that is answered in time, whether the server answers or not, in a thread of its own.

Whoever comes while a look is under way waits for that one: a server that hangs holds one thread, and none
that the routes use.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from anyio import CapacityLimiter, to_thread

T = TypeVar("T")

ANSWERED_S: Final = 4.0


class Look(Generic[T]):
    """One question to a server."""

    def __init__(self, work: Callable[[], T], late: T, within_s: float = ANSWERED_S) -> None:
        """Ask by `work`; where it takes too long, `late` is the answer."""
        self._work = work
        self._late = late
        self._within_s = within_s
        self._thread = CapacityLimiter(1)
        self._task: asyncio.Task[T] | None = None

    async def ask(self) -> T:
        """Give the answer of a look that is under way, or of a new one."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(self._within_s):
                return await asyncio.shield(self._task)
        except TimeoutError:
            return self._late

    async def _look(self) -> T:
        return await to_thread.run_sync(self._work, limiter=self._thread, abandon_on_cancel=True)
