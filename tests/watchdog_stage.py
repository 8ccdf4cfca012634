"""What tests of the watchdog share: its parts under a clock that stands still, and runs in any state."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from redis import Redis
from rq.job import Job
from sqlalchemy import text

from shared.db.claims import Lessee, claim_runs
from shared.db.engine import Database, open_database
from shared.db.people import Member, insert_member, insert_workspace
from shared.db.runs_new import insert_runs
from shared.ids import new_id
from shared.keys import Keys
from shared.model.roles import Role
from shared.model.runs import Claim, NewRun, QueueKind, RunSource
from shared.queue import HandleQueue, decode_handle
from shared.redis_port import open_redis
from shared.settings import Settings
from shared.time.clock import ManualClock
from watchdog.parts import Parts

START = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
WORKSPACE = "w1"
LEASE = timedelta(seconds=60)


@dataclass(frozen=True)
class Stage:
    """A database, a Redis, a clock, and the watchdog's parts made of them."""

    parts: Parts
    clock: ManualClock
    client: Any

    @property
    def database(self) -> Database:
        return self.parts.database

    def advance(self, seconds: float) -> datetime:
        """Let time pass, and give what time it is then."""
        self.clock.advance(timedelta(seconds=seconds))
        return self.clock.now()

    def twin(self, owner: str) -> Parts:
        """Give the parts of another watchdog on the same servers and clock."""
        return replace(self.parts, owner=owner)

    def rows(self, query: str, **values: object) -> list[Any]:
        """Read with a query of the test's own."""
        with self.database.read() as conn:
            return list(conn.execute(text(query), values).all())

    def write(self, statement: str, **values: object) -> None:
        """Put rows into a state that only a fault brings about."""
        with self.database.begin() as conn:
            conn.execute(text(statement), values)

    def run(self, run_id: str) -> Any:
        """Read a run's row."""
        (row,) = self.rows("SELECT * FROM automation_runs WHERE id = :id", id=run_id)
        return row

    def logs(self, run_id: str) -> list[str]:
        """Read a run's log."""
        query = "SELECT message FROM automation_logs WHERE run_id = :id ORDER BY id"
        return [row.message for row in self.rows(query, id=run_id)]

    def pending(self, count: int = 1, *, depth: int = 0, queue: QueueKind = QueueKind.MAIN) -> list[str]:
        """Insert PENDING runs that are due now and have no handle."""
        automation_id = self.automation()
        runs = [new_run_of(automation_id, depth, queue, self.clock.now()) for _ in range(count)]
        with self.database.begin() as conn:
            insert_runs(conn, runs)
        return [run.id for run in runs]

    def running(self, *, depth: int = 0, failures: int = 0, crashes: int = 0) -> Claim:
        """Insert a run and claim it now; nobody will renew its lease."""
        (run_id,) = self.pending(depth=depth)
        with self.database.begin() as conn:
            (claimed,) = claim_runs(conn, [run_id], Lessee("worker-1", self.clock.now(), LEASE))
        self.write(
            "UPDATE automation_runs SET failures = :failures, crash_count = :crashes, retry_count = :failures"
            " WHERE id = :id",
            id=run_id,
            failures=failures,
            crashes=crashes,
        )
        return claimed.claim

    def automation(self, status: str = "ACTIVE") -> str:
        """Insert an automation that is called `Tell the shop`."""
        automation_id = new_id()
        self.write(
            "INSERT INTO automations (id, workspace_id, key, name, status, version, definition, created_at,"
            " updated_at) VALUES (:id, :workspace, :id, 'Tell the shop', :status, 1, '{}', :now, :now)",
            id=automation_id,
            workspace=WORKSPACE,
            status=status,
            now=self.clock.now().isoformat(),
        )
        return automation_id

    def handles(self, kind: QueueKind = QueueKind.MAIN) -> list[tuple[str, datetime]]:
        """Read the queue: each run that has a handle, and the handle's instant, in order."""
        name = f"rq:queue:{self.parts.keys.queue(kind)}"
        found = []
        for handle_id in self.client.lrange(name, 0, -1):
            handle = decode_handle(handle_id.decode(), self.client.hgetall(Job.key_for(handle_id.decode())))
            found += [(run_id, handle.at) for run_id in handle.run_ids]
        return found

    def handled(self, kind: QueueKind = QueueKind.MAIN) -> list[str]:
        """Read which runs have a handle."""
        return [run_id for run_id, _ in self.handles(kind)]


def new_run_of(automation_id: str, depth: int, queue: QueueKind, at: datetime) -> NewRun:
    run_id = new_id()
    return NewRun(
        id=run_id,
        workspace_id=WORKSPACE,
        automation_id=automation_id,
        automation_version=1,
        source=RunSource.EVENT,
        source_id=f"{automation_id}:{run_id}",
        event_key=None,
        event_hash=None,
        entry_id=None,
        trigger_type="RECORD_CREATED",
        subject_type=None,
        subject_id=None,
        depth=depth,
        root_run_id=run_id,
        input={},
        event=None,
        queue=queue,
        created_at=at,
    )


def open_stage(database_url: str, redis_url: str, settings: Settings | None = None) -> Stage:
    """Open a stage; `closing_stage` closes it."""
    keys = Keys("t:", "factory:events")
    redis = open_redis(redis_url)
    clock = ManualClock(START)
    parts = Parts(
        settings=settings or Settings(_env_file=None),
        database=open_database(database_url),
        redis=redis,
        keys=keys,
        queue=HandleQueue(redis, keys),
        clock=clock,
        owner="watchdog-1",
    )
    return Stage(parts, clock, Redis.from_url(redis_url))


def close_stage(stage: Stage) -> None:
    """Close every connection of a stage."""
    stage.database.dispose()
    stage.parts.redis.close()
    with closing(stage.client):
        pass


def add_members(stage: Stage, roles: Iterable[str]) -> None:
    """Make the workspace, with one member of each role."""
    now = stage.clock.now()
    with stage.database.begin() as conn:
        insert_workspace(conn, WORKSPACE, "Shop", now=now)
        for role in roles:
            insert_member(
                conn, Member(new_id(), WORKSPACE, f"{role}@example.test", role, Role(role)), now=now
            )
