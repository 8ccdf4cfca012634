"""A matcher with idle rules, told events at moments of our own choosing, and what waits after them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.idle_rows import IDLE_COLUMNS, idle_step_row
from shared.db.sql import sql
from shared.db.tables_idle import AI_AGENTS, CHANNELS, FEATURE_FLAGS
from shared.db.tables_people import FLAGS
from shared.keys import idle_key
from shared.model.flag_states import SEQUENTIAL_IDLE
from shared.model.idle_steps import IdleResult, IdleStepRow
from shared.services.backends import Backends
from shared.time.clock import ManualClock
from tests.any_rows import add_row
from tests.arming import Desk, Told, message, open_desk
from tests.people import opened_backends
from timers.idle import IdleSweep

STEPS: Final = (
    {"action": "follow_up", "duration": 600, "message": "Still there?"},
    {"action": "assign", "duration": 1200, "assign": {"type": "auto"}},
    {"action": "resolve", "duration": 1800, "message": "Bye."},
)
LEGACY: Final = {"action": "resolve", "resolve": {"duration": 60, "message": "Bye."}}
GLOBAL: Final = {"enabled": True, "duration": 300, "action": "resolve", "message": "We close this."}

_ROWS: Final = sql(f"SELECT {IDLE_COLUMNS} FROM idle_steps r ORDER BY r.created_at, r.id")
_ABOUT: Final = sql(
    f"SELECT {IDLE_COLUMNS} FROM idle_steps r WHERE r.conversation_id = :id ORDER BY r.created_at, r.id"
)


def bot(at: datetime, id_: str, talk: str = "c1", **told: Any) -> Told:
    """Tell of a message of the AI agent `nora`."""
    return message(at, id_, "outgoing", talk, **{"senderType": "bot", "agentId": "nora", **told})


def add_agent(conn: Connection, id_: str = "nora", **rule: Any) -> None:
    """Store an AI agent of w1 with an idle rule: three steps unless it is said otherwise."""
    parameters = {"profile": {"idle_rule": rule or {"steps": STEPS}}}
    values = {"workspace_id": "w1", "id": id_, "name": f"Agent {id_}", "deleted_at": None}
    add_row(conn, AI_AGENTS, parameters=parameters, **values)


def add_channel(conn: Connection, workspace_id: str = "w1") -> None:
    """Store the channel `shop` with an idle rule."""
    values = {"workspace_id": workspace_id, "id": "shop", "name": "The shop", "enabled": 1}
    add_row(conn, CHANNELS, settings={"idle_rule": GLOBAL}, **values)


def turn_on(conn: Connection) -> None:
    """Turn the flag on, for the installation and in w1."""
    add_row(conn, FEATURE_FLAGS, name=SEQUENTIAL_IDLE, enabled=1)
    add_row(conn, FLAGS, workspace_id="w1", name=SEQUENTIAL_IDLE, enabled=1)


@dataclass(frozen=True)
class IdleStage:
    """What a test tells, sweeps and looks at; all of it in w1."""

    desk: Desk
    clock: ManualClock

    @property
    def backends(self) -> Backends:
        return self.desk.backends

    def tell(self, *told: Told) -> None:
        """Have events taken in as one set."""
        self.desk.tell(*told)

    def move_to(self, at: datetime) -> None:
        self.clock.advance(at - self.clock.now())

    def sweep(self) -> None:
        """Sweep once, as a process that has just started."""
        IdleSweep(self.backends).pass_once()

    def sweep_at(self, at: datetime) -> None:
        self.move_to(at)
        self.sweep()

    def rows(self, talk: str | None = None) -> list[IdleStepRow]:
        """Give every row, or those of one conversation, oldest first."""
        with self.backends.database.read() as conn:
            found = _ROWS.run(conn) if talk is None else _ABOUT.run(conn, {"id": talk})
            return [idle_step_row(row) for row in found]

    def stands(self, talk: str | None = None) -> list[tuple[str, str, str | None]]:
        """Give the anchor, the status and the reason of each row, oldest first."""
        return [(row.anchor.message_id, row.status, row.reason) for row in self.rows(talk)]

    def change(self, statement: str, **values: object) -> None:
        with self.backends.database.begin() as conn:
            sql(statement).run(conn, values)

    def runs(self) -> list[Any]:
        return self.desk.post.runs()

    def counted(self, result: IdleResult) -> int:
        return self.desk.post.count(idle_key(self.backends.keys, result))


@contextmanager
def open_idle(database_url: str, redis_url: str, **rule: Any) -> Iterator[IdleStage]:
    """Open a deployment with the agent `nora`, the channel `shop`, and the flag on."""
    with opened_backends(database_url, redis_url) as backends:
        assert isinstance(backends.clock, ManualClock)
        with backends.database.begin() as conn:
            add_agent(conn, **rule)
            add_channel(conn)
            turn_on(conn)
        yield IdleStage(open_desk(backends), backends.clock)


def rule_of(stage: IdleStage, rule: Mapping[str, Any]) -> None:
    """Give the agent `nora` another rule."""
    with stage.backends.database.begin() as conn:
        sql("DELETE FROM ai_agents").run(conn)
        add_agent(conn, **rule)
