"""Keeps the index as new as the rows: whole at the start, then what changed since.

A change is loaded when the counter that every change raises has moved, which is read right after the events
that it must come before; and by a poll, should the counter be lost.
"""

from datetime import datetime, timedelta
from typing import Final

from matcher.index import Index
from shared.db.automations import AutomationRow, changed_automations, listening_automations
from shared.db.engine import Database
from shared.errors import DefinitionError
from shared.logs import get_logger
from shared.model.automation import Automation, parse_definition
from shared.model.statuses import AutomationStatus
from shared.time.clock import Clock

OVERLAP: Final = timedelta(seconds=60)
POLL_S: Final = 10.0

_LISTENING: Final = frozenset({AutomationStatus.ACTIVE, AutomationStatus.PAUSED})
_Seen = tuple[int, AutomationStatus, datetime]

log = get_logger("matcher")


class IndexLoader:
    """The index and how far it has been brought. One thread uses it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        """Load nothing yet."""
        self.index = Index()
        self._database = database
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._unreadable = 0
        self._version: int | None = None
        self._loaded_at: datetime | None = None
        self._loaded_s = 0.0

    def refresh(self, version: int) -> None:
        """Load what changed if the counter's `version` is news or the poll is due; at first, everything.

        While SQL is away it raises and the index stays as it was.
        """
        now, now_s = self._clock.now(), self._clock.monotonic()
        if version == self._version and now_s - self._loaded_s < POLL_S:
            return
        with self._database.read() as conn:
            if self._loaded_at is None:
                rows = listening_automations(conn)
            else:
                rows = changed_automations(conn, self._loaded_at - OVERLAP)
        for row in rows:
            self._take(row)
        self._version, self._loaded_at, self._loaded_s = version, now, now_s

    def take_unreadable(self) -> int:
        """Give how many definitions could not be read since this was last asked."""
        count, self._unreadable = self._unreadable, 0
        return count

    def _take(self, row: AutomationRow) -> None:
        seen = (row.version, row.status, row.updated_at)
        if self._seen.get(row.id) == seen:
            return
        self._seen.pop(row.id, None)
        self.index.drop(row.id)
        if row.deleted_at is None and row.status in _LISTENING:
            self._seen[row.id] = seen
            self._read(row)

    def _read(self, row: AutomationRow) -> None:
        try:
            definition = parse_definition(row.definition)
        except DefinitionError as error:
            self._unreadable += 1
            log.error("definition_unreadable", automation_id=row.id, reason=str(error))
            return
        current = definition.model_copy(update={"status": row.status})
        self.index.put(
            Automation(row.id, row.workspace_id, row.version, current, row.activated_ms, row.created_at)
        )
