"""A deployment with delayed automations: what waits, sweeps and engines, on a clock that stands still."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from pipeline.engine import Engine
from pipeline.parts import open_parts
from pipeline.settling import Settler
from shared.db.automations import find_automations
from shared.db.messages import insert_messages
from shared.db.pending import insert_pending
from shared.db.pending_due import find_executions
from shared.db.subjects import find_subjects
from shared.ids import new_id
from shared.model.events import Context, Event, event_to_json
from shared.model.messages import Direction, Message, SenderType, message_payload
from shared.model.pending import Episode, PendingRow, PendingStatus
from shared.model.runs import RunSource
from shared.model.stamps import Stamp, format_stamp
from shared.model.subject_events import payload_of
from shared.model.subjects import SubjectRow, subject_of
from shared.rules.episodes import compile_standing, state_episode
from shared.rules.talk import Talk, message_episode
from shared.services.automations import apply_changes
from shared.services.backends import Backends
from shared.services.definitions import Leftovers
from shared.services.subjects import SubjectFields, delete_subject, put_subject
from shared.settings import Settings
from shared.time.clock import ManualClock, epoch_ms
from tests.people import CALLER, definition, opened_backends
from tests.rooms import Execute
from timers.delayed import DelayedSweep
from worker.settlers import with_settlers

EXPIRY = timedelta(hours=72)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
PENDING_NOW = {"field": "conversation.status", "op": "eq", "value": "pending"}
LABEL = {"type": "ADD_LABEL", "config": {"labels": ["stale-pending"]}}


def _as_it_is(settler: Settler) -> Settler:
    return settler


@dataclass
class Stage:
    """What a test acts on and looks at. Conversations, unless it is said otherwise; the workspace is w1."""

    backends: Backends
    clock: ManualClock
    settings: Settings
    engines: list[Engine] = field(default_factory=list)
    said: int = 0

    def rule(self, delay: int | None = 240, conditions: Any = PENDING_NOW, **given: Any) -> str:
        """Apply an ACTIVE automation that waits `delay` minutes, and give its id."""
        wanted = {
            "key": "stale",
            "trigger": {"type": "CONVERSATION_UPDATED", "config": {}},
            "actions": [LABEL],
            "status": "ACTIVE",
            "conditions": conditions,
            "execution_delay": delay,
            **given,
        }
        apply_changes(self.backends, CALLER, [definition(**wanted)], Leftovers.KEEP)
        self.change("UPDATE automations SET activated_ms = 0")  # it was Redis' clock that told when
        (row,) = self.rows("SELECT id FROM automations WHERE key = :key", key=wanted["key"])
        return str(row.id)

    def put(self, id_: str = "c1", type_: str = "conversation", **fields: Any) -> SubjectRow:
        """Write fields of a subject as a person does."""
        return put_subject(self.backends, CALLER, SubjectFields(type_, id_, fields)).row

    def subject(self, id_: str = "c1", type_: str = "conversation") -> SubjectRow:
        with self.backends.database.read() as conn:
            return find_subjects(conn, [("w1", type_, id_)])["w1", type_, id_]

    def after(self, by: timedelta) -> "Stage":
        self.clock.advance(by)
        return self

    def sweep(self, expiry: timedelta = EXPIRY) -> None:
        """Sweep once, as a process that has just started."""
        DelayedSweep(self.backends, expiry).pass_once()

    def pending(self, pending_id: str) -> PendingRow:
        with self.backends.database.read() as conn:
            return find_executions(conn, [pending_id])[pending_id]

    def stands(self, pending_id: str) -> tuple[str, str | None]:
        """Give a row's status and the reason why it was skipped."""
        row = self.pending(pending_id)
        return row.status.value, None if row.skip_reason is None else row.skip_reason.value

    def rows(self, query: str, **values: object) -> Sequence[Any]:
        with self.backends.database.read() as conn:
            return conn.execute(text(query), values).all()

    def change(self, statement: str, **values: object) -> None:
        with self.backends.database.begin() as conn:
            conn.execute(text(statement), values)

    def runs(self) -> Sequence[Any]:
        return self.rows("SELECT * FROM automation_runs ORDER BY created_at, id")

    def count(self, key: str) -> int:
        return int(self.backends.redis.get(key) or 0)


def flip(stage: Stage, id_: str = "c1") -> None:
    """Take a conversation out of its state and put it back, with no time in between."""
    stage.put(id_, status="open")
    stage.put(id_, status="pending")


def delete(stage: Stage, id_: str = "c1") -> None:
    delete_subject(stage.backends, CALLER, "conversation", id_)


def say(stage: Stage, direction: Direction = Direction.INCOMING, id_: str = "c1", **given: Any) -> Message:
    """Write a message of a conversation, a person's unless it is said otherwise."""
    stage.said += 1
    sender = SenderType.CONTACT if direction is Direction.INCOMING else SenderType.AGENT
    made = Message(
        workspace_id="w1",
        id=f"m{stage.said}",
        conversation_id=id_,
        direction=direction,
        sender_type=sender,
        sender_id=None,
        agent_id=None,
        content="Hello?",
        private=False,
        auto_submitted=False,
        stamp=(epoch_ms(stage.clock.now()), 1_000 + stage.said),
        run_id=None,
        created_at=stage.clock.now(),
    )
    made = replace(made, **given)
    with stage.backends.database.begin() as conn:
        insert_messages(conn, [made])
    return made


def wait(stage: Stage, automation_id: str, id_: str = "c1", **given: Any) -> str:
    """Let a state of a conversation, or of a subject of `type_`, wait since it began; give the row's id."""
    subject = stage.subject(id_, given.pop("type_", "conversation"))
    event = told(stage, subject, given.pop("context", None))
    start = start_of(stage, automation_id, event, subject)
    return arm(stage, automation_id, event, state_episode(start), **given)


def wait_for(stage: Stage, automation_id: str, message: Message, talk: Talk) -> str:
    """Let a message of a conversation wait, as the matcher does; give the row's id."""
    event = told(stage, stage.subject(message.conversation_id), message=message_payload(message))
    event = replace(event, type="message.created", entry_id=format_stamp(message.stamp))
    episode = message_episode(message, talk)
    assert episode is not None
    return arm(stage, automation_id, event, episode)


def told(stage: Stage, subject: SubjectRow, context: Context | None = None, **payload: Any) -> Event:
    """Make the event that tells of a subject as it is."""
    return Event(
        entry_id=format_stamp(subject.newest),
        type=f"{subject.type}.updated",
        workspace_id="w1",
        payload={**payload_of(subject), **payload},
        id=new_id(),
        occurred_at=stage.clock.now(),
        context=context,
        source=None,
        sanitized=False,
    )


def start_of(stage: Stage, automation_id: str, event: Event, subject: SubjectRow) -> Stamp:
    """Say since when the conditions of an automation hold."""
    with stage.backends.database.read() as conn:
        row = find_automations(conn, [automation_id])[automation_id]
    start = compile_standing(row.definition["conditions"]).start(event, subject, stage.clock.now())
    assert start is not None
    return start.stamp


def arm(stage: Stage, automation_id: str, event: Event, episode: Episode, **given: Any) -> str:
    """Let an episode of the event's subject wait; give the row's id."""
    with stage.backends.database.read() as conn:
        delay = find_automations(conn, [automation_id])[automation_id].definition["execution_delay"]
    now, subject = stage.clock.now(), subject_of(event)
    assert subject is not None
    row = PendingRow(
        id=new_id(),
        workspace_id="w1",
        automation_id=automation_id,
        subject_type=subject.type,
        subject_id=subject.id,
        episode=episode,
        trigger_event=event_to_json(event),
        due_at=episode.started_at + timedelta(minutes=delay),
        status=PendingStatus.PENDING,
        skip_reason=None,
        run_id=None,
        version=1,
        armed_at=now,
        claimed_at=None,
        ended_at=None,
        created_at=now,
        updated_at=now,
    )
    row = replace(row, **given)
    with stage.backends.database.begin() as conn:
        assert insert_pending(conn, [row]) == {row.id}
    return row.id


def engine_of(
    stage: Stage,
    executors: Mapping[str, Execute] | None = None,
    settler: Callable[[Settler], Settler] | None = _as_it_is,
) -> Engine:
    """Start a worker's engine; `settler` may stand around the one for delayed runs, None leaves it away."""
    parts = replace(open_parts(stage.settings), clock=stage.clock, database=stage.backends.database)
    parts = replace(parts, executors={**parts.executors, **(executors or {})})
    if settler is not None:
        inner = with_settlers(parts).settlers[RunSource.DELAYED]
        parts = replace(parts, settlers={RunSource.DELAYED: settler(inner)})
    engine = Engine(parts)
    engine.start()
    stage.engines.append(engine)
    return engine


def drive(stage: Stage, engine: Engine, timeout_s: float = 20) -> None:
    """Have an engine drive all runs to their rest."""
    engine.take([run.id for run in stage.runs()])
    assert engine.wait_idle(timeout_s)


def run_of(stage: Stage, pending_id: str) -> Any:
    """Give the run that a row was executed with."""
    found = stage.pending(pending_id).run_id
    return stage.rows("SELECT * FROM automation_runs WHERE id = :id", id=found)[0]


@contextmanager
def open_stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    """Open a deployment whose clock stands still, with the workspaces w1 and w2."""
    settings = Settings.model_validate({"redis_url": redis_url, "database_url": database_url})
    with opened_backends(database_url, redis_url) as backends:
        assert isinstance(backends.clock, ManualClock)
        stage = Stage(backends, backends.clock, settings)
        yield stage
        for engine in stage.engines:
            engine.stop(grace_s=2)
