"""Which queue a workspace's new runs go to: one with a long backlog must not make the others wait."""

from collections.abc import Iterable, Mapping
from typing import Final

from shared.db.engine import Database
from shared.db.runs_new import count_waiting
from shared.model.runs import QueueKind, queue_for
from shared.time.clock import Clock

KEPT_S: Final = 1.0


class Backlog:
    """How many runs wait in each workspace, as of about a second ago, and what was added since."""

    def __init__(self, database: Database, clock: Clock) -> None:
        """Count nothing yet."""
        self._database = database
        self._clock = clock
        self._waiting: dict[str, int] = {}
        self._counted_s = 0.0

    def queues_for(self, workspace_ids: Iterable[str]) -> Mapping[str, QueueKind]:
        """Choose a queue for each workspace's next runs."""
        if self._clock.monotonic() - self._counted_s >= KEPT_S:
            self._waiting.clear()
            self._counted_s = self._clock.monotonic()
        wanted = set(workspace_ids)
        unknown = wanted - self._waiting.keys()
        if unknown:
            with self._database.read() as conn:
                self._waiting |= count_waiting(conn, unknown)
        return {each: queue_for(self._waiting[each]) for each in wanted}

    def add(self, workspace_ids: Iterable[str]) -> None:
        """Note runs that were just made, each by its workspace."""
        for workspace_id in workspace_ids:
            self._waiting[workspace_id] = self._waiting.get(workspace_id, 0) + 1
