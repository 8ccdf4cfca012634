"""A deployment whose idle steps are armed, swept and carried out, on a clock that stands still."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import orjson

from executors.contract import ActionResult, RunContext
from pipeline.engine import Engine
from pipeline.parts import Parts, open_parts
from shared.db.sql import sql
from shared.db.subjects import find_subjects
from shared.errors import FatalError
from shared.model.actions import ActionConfig
from shared.model.idle_steps import IdleResult
from shared.model.subjects import data
from shared.settings import Settings
from tests.arming import hour
from tests.idle_stage import IdleStage, bot, open_idle
from tests.rooms import Execute
from tests.waiting import poll
from worker.settlers import with_settlers

NOON = hour("12:00")
MINUTE = timedelta(minutes=1)
THREE = (
    {"action": "follow_up", "duration": 600, "message": "Still there? {{ 1 | plus: 1 }}"},
    {"action": "follow_up", "duration": 600, "message": "Hello?"},
    {"action": "resolve", "duration": 600, "message": "Bye."},
)


def after(minutes: float) -> datetime:
    return NOON + minutes * MINUTE


@dataclass
class Failing:
    """What stands in for an executor: fails as often as it is told to, then does as the real one.

    Something may happen `before` each of its calls.
    """

    inner: Execute
    failures: int
    calls: int = 0
    before: Callable[[], object] | None = None

    def __call__(self, config: ActionConfig, run: RunContext) -> ActionResult:
        self.calls += 1
        if self.before is not None:
            self.before()
        if self.calls <= self.failures:
            raise FatalError("AWAY", "the other side is away")
        return self.inner(config, run)


@dataclass
class Road:
    """An idle stage with engines."""

    idle: IdleStage
    settings: Settings
    engines: list[Engine] = field(default_factory=list)
    executors: Mapping[str, Execute] = field(default_factory=dict)

    def parts(self) -> Parts:
        parts = replace(
            open_parts(self.settings), clock=self.idle.clock, database=self.idle.backends.database
        )
        return with_settlers(replace(parts, executors={**parts.executors, **self.executors}))

    def failing(self, type_: str, failures: int) -> Failing:
        """Have an action fail so often."""
        stub = Failing(open_parts(self.settings).executors[type_], failures)
        self.executors = {**self.executors, type_: stub}
        return stub

    def begin(self, at: datetime = NOON, id_: str = "m1", **told: Any) -> None:
        """Have the agent speak."""
        self.idle.tell(bot(at, id_, **told))

    def drive(self) -> None:
        """Have an engine drive what is due."""
        if not self.engines:
            engine = Engine(self.parts())
            engine.start()
            self.engines.append(engine)
        self.engines[0].take([run.id for run in self.runs()])
        assert self.engines[0].wait_idle(20)

    def at(self, minutes: float) -> None:
        """Sweep and drive at so many minutes after noon."""
        self.idle.sweep_at(after(minutes))
        self.drive()

    def rows(self, query: str, **values: object) -> list[Any]:
        with self.idle.backends.database.read() as conn:
            return list(sql(query).run(conn, values))

    def runs(self) -> list[Any]:
        return self.rows("SELECT * FROM automation_runs ORDER BY created_at, id")

    def said(self) -> list[tuple[str, dict[str, Any]]]:
        """Give the text and the mark of each message that steps have left, oldest first."""
        found = self.rows(
            "SELECT content, parameters FROM messages WHERE parameters IS NOT NULL"
            " ORDER BY stamp_ms, stamp_seq"
        )
        return [(row.content, tree(row.parameters)["idle_rule"]) for row in found]

    def told(self, *types: str) -> list[dict[str, Any]]:
        """Give the payloads of the events of these types that were emitted."""
        rows = self.rows("SELECT fields FROM outbox ORDER BY id")
        events = [tree(row.fields) for row in rows]
        return [orjson.loads(event["payload"]) for event in events if event["type"] in types]

    def conversation(self) -> dict[str, Any]:
        key = ("w1", "conversation", "c1")
        with self.idle.backends.database.read() as conn:
            return dict(data(find_subjects(conn, [key])[key]))

    def counts(self, result: IdleResult, wanted: int) -> None:
        """Wait until so many are counted, which is after the commit."""
        poll(lambda: self.idle.counted(result) == wanted)

    def steps(self) -> list[tuple[int, str, str | None]]:
        """Give index, status and reason of each step, oldest first."""
        return [(row.step_index, row.status, row.reason) for row in self.idle.rows()]


def tree(value: Any) -> Any:
    return orjson.loads(value) if isinstance(value, str | bytes) else value


@contextmanager
def open_road(database_url: str, redis_url: str, **rule: Any) -> Iterator[Road]:
    """Open a deployment with three steps of ten minutes, unless the agent has another rule."""
    settings = Settings.model_validate({"redis_url": redis_url, "database_url": database_url})
    with open_idle(database_url, redis_url, **(rule or {"steps": THREE})) as idle:
        road = Road(idle, settings)
        yield road
        for engine in road.engines:
            engine.stop(grace_s=2)
