"""Notes of when keys were used, written beside the requests: none waits for the turn to write one."""

import asyncio
from typing import Final

from anyio import CapacityLimiter, to_thread
from sqlalchemy.exc import SQLAlchemyError

from api.errors import log
from shared.services.authentication import KnownKey, note_use_of
from shared.services.backends import Backends

WAITING_MAX: Final = 1_000


class Noting:
    """Writes the notes one after the other, in a thread of its own; at most one for a key is under way."""

    def __init__(self, backends: Backends) -> None:
        """Write to these servers."""
        self._backends = backends
        self._thread = CapacityLimiter(1)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def note(self, key: KnownKey) -> None:
        """Have it noted that a key was used, if that is due."""
        if key.is_note_due and key.id not in self._tasks and len(self._tasks) < WAITING_MAX:
            self._tasks[key.id] = asyncio.create_task(self._write(key))

    async def _write(self, key: KnownKey) -> None:
        database, clock = self._backends.database, self._backends.clock
        try:
            await to_thread.run_sync(
                note_use_of, database, clock, key, limiter=self._thread, abandon_on_cancel=True
            )
        except (SQLAlchemyError, OSError) as fault:
            log.warning("key_use_not_noted", reason=type(fault).__name__)
        finally:
            del self._tasks[key.id]
