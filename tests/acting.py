"""Actions driven through an engine: one automation, one event, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pipeline.engine import Engine
from shared.db.subjects import find_subject, project_changes
from shared.model.subjects import SubjectDelete, SubjectWrite, data
from tests.rooms import Room, tree

CONVERSATION = {"conversation": {"id": "c1", "status": "pending"}}


@dataclass(frozen=True)
class Stage:
    """A room with an engine that runs; the conversation c1 is known in it once `knows` told of it."""

    room: Room
    engine: Engine

    def knows(self, type_: str = "conversation", id_: str = "c1", **fields: Any) -> None:
        """Have an event of long ago tell of a subject, or one `by` another at `ms`."""
        by, ms = fields.pop("by", f"id:{type_}-{id_}"), fields.pop("ms", 1_000)
        self._project(SubjectWrite("w1", type_, id_, (ms, 0), by, fields))

    def loses(self, type_: str = "conversation", id_: str = "c1") -> None:
        """Have an event of long ago tell that a subject is gone."""
        self._project(SubjectDelete("w1", type_, id_, (2_000, 0), f"id:gone-{id_}"))

    def acts(self, *actions: Mapping[str, Any], on: Mapping[str, Any] = CONVERSATION, **keys: Any) -> Any:
        """Drive a run of these actions to its end and give its row."""
        keys.setdefault("type", "conversation.updated")
        automation = self.room.automation(*actions, name="Keeper")
        run_id = self.room.run(automation, on, **keys)
        self.engine.take([run_id])
        assert self.engine.wait_idle(20)
        return self.room.row(run_id)

    def outputs(self, row: Any) -> dict[str, Any]:
        """Give the outputs of a run's finished actions, by their position."""
        rows = self.room.all("SELECT position, output FROM run_actions WHERE run_id = :id", id=row.id)
        return {str(each.position): tree(each.output) for each in rows}

    def failure(self, row: Any) -> str:
        """Give the code with which a run failed for good."""
        assert row.status == "FAILED", row.status
        return str(tree(row.error)["code"])

    def told(self, *types: str) -> list[dict[str, Any]]:
        """Give the events that were emitted, in order, but for the ends of runs."""
        entries = [tree(row.fields) for row in self.room.all("SELECT fields FROM outbox ORDER BY id")]
        read = [{**e, "payload": tree(e["payload"]), "context": tree(e["context"])} for e in entries]
        return [e for e in read if e["type"] != "automation.executed" and (not types or e["type"] in types)]

    def state(self, type_: str = "conversation", id_: str = "c1") -> dict[str, Any]:
        """Give a subject's fields as they are now."""
        with self.room.database.read() as conn:
            row = find_subject(conn, "w1", type_, id_)
        assert row is not None
        return data(row)

    def _project(self, change: SubjectWrite | SubjectDelete) -> None:
        with self.room.database.begin() as conn:
            project_changes(conn, [change], now=datetime.now(UTC))


def action(type_: str, **config: Any) -> dict[str, Any]:
    """Make an action of an automation."""
    return {"type": type_, "config": config}
