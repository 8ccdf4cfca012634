"""What a test sees at the end of the road: rows and the stream, and nothing of what led to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from shared.db.schema import METADATA
from shared.model.events import Event, decode_entry
from tests.rooms import Room, tree


@dataclass
class Sights:
    """Looks at one deployment."""

    room: Room

    def runs(self, automation_id: str | None = None) -> Sequence[Any]:
        """Give every run, or those of one automation, oldest first."""
        rows = self.room.all("SELECT * FROM automation_runs ORDER BY id")
        return [row for row in rows if automation_id in (None, row.automation_id)]

    def run(self, automation_id: str | None = None) -> Any:
        """Give the only run."""
        (row,) = self.runs(automation_id)
        return row

    def ends(self, automation_id: str | None = None) -> list[str]:
        """Say of each run how it ended: why it was skipped, or its status."""
        return [row.skip_reason or row.status for row in self.runs(automation_id)]

    def code(self, run: Any) -> str:
        """Give the code of a run's error."""
        return str(tree(run.error)["code"])

    def data(self, record_id: str, workspace_id: str = "w1") -> Any:
        """Give what is known of a record."""
        query = "SELECT data FROM subjects WHERE id = :id AND workspace_id = :workspace_id"
        return tree(self.room.one(query, id=record_id, workspace_id=workspace_id).data)

    def told(self, type_: str) -> list[Event]:
        """Give the events of a type that are on the stream, published by whomever."""
        entries = self.room.parts.redis.xrange(self.room.parts.keys.stream)
        found = [decode_entry(entry_id.decode(), fields) for entry_id, fields in entries if is_whole(fields)]
        return [event for event in found if event.type == type_]

    def why(self, run_id: str) -> list[str]:
        """Give the reasons in the log why a run's conditions did not hold."""
        query = "SELECT data FROM automation_logs WHERE run_id = :id AND message = 'run skipped: conditions'"
        return [leaf["reason"] for leaf in tree(self.room.one(query, id=run_id).data)["failed"]]

    def notices(self) -> list[str]:
        """Give the titles of all notices, oldest first."""
        return [row.title for row in self.room.all("SELECT title FROM notifications ORDER BY id")]

    def sizes(self) -> dict[str, int]:
        """Count the rows of every table, and the entries of the stream."""
        with self.room.database.read() as conn:
            counted = {
                name: conn.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
                for name in METADATA.tables
                if name != "locks"
            }
        return {**counted, "stream": self.room.parts.redis.xlen(self.room.parts.keys.stream)}


def is_whole(fields: Mapping[bytes, bytes]) -> bool:
    """Tell whether an entry could be an event at all."""
    return {b"type", b"workspaceId", b"payload"} <= fields.keys()
