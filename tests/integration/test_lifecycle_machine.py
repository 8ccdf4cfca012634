"""Runs under claims, kills, rescues, replays and cancels at random, against a model of what may happen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from pipeline.recording import write_batch
from pipeline.verdicts import Record, Standing
from shared.db.automations import AutomationRow
from shared.db.claims import EARLY, Lessee, claim_runs, renew_leases
from shared.db.persons_moves import cancel_run, replay_runs, stop_run
from shared.db.rescue import bury_runs, expired_leases, lock_expired, rescue_runs
from shared.model.effects import Notify
from shared.model.runs import (
    Claim,
    ClaimedRun,
    DeadLettered,
    Failed,
    HandedBack,
    Outcome,
    Retried,
    RunError,
    Succeeded,
)
from tests.journals import acted, ended
from tests.rooms import Room, tree
from tests.runs import NOW

LEASE = timedelta(seconds=60)
CRASHES_MAX = 3
REPLAYED = ("FAILED", "DEAD_LETTER")
ERROR = RunError("CODE", "text", 1)
ENDINGS: dict[str, Outcome] = {
    "SUCCEEDED": Succeeded(None, {}),
    "FAILED": Failed(ERROR),
    "DEAD_LETTER": DeadLettered(ERROR),
}
DEEDS = (
    *("claim", "claim", "claim", "finish_an_action", "finish_an_action", "retry", "retry", "crash", "crash"),
    *("end", "replay", "replay", "hand_back", "die", "renew", "rescue", "cancel_or_stop"),
)
TELL = Notify("t", "b", ("owner",))
STEPS = {"sqlite": (30, 40), "postgresql": (10, 40)}


pick = st.integers(0, 10**6)
waits = st.sampled_from([0, 1, 30, 61, 600])


def several(number: int) -> list[int]:
    """Make one to five numbers of one."""
    return [number + 4 * each for each in range(1 + number % 5)]


@dataclass
class Model:
    """What one run must look like; `done` holds the actions that count, each once."""

    id: str
    status: str = "PENDING"
    lease: int = 0
    lease_until: Any = None
    due: Any = None
    retry_count: int = 0
    failures: int = 0
    crash_count: int = 0
    stop_reason: str | None = None
    done: list[int] = field(default_factory=list)

    def holds(self, claim: Claim) -> bool:
        return self.status == "RUNNING" and self.lease == claim.lease

    def end(self, status: str) -> None:
        self.status, self.stop_reason = status, None


@dataclass
class Worker:
    """A process that believes it holds a run, rightly or not, and knows what it found finished."""

    run: ClaimedRun
    next_position: int


class Book(RuleBasedStateMachine):
    """Runs in a database, what they must look like, and those who believe that they hold one."""

    def __init__(self, room: Room, automation: AutomationRow) -> None:
        super().__init__()
        self.room, self.automation = room, automation
        self.now = NOW
        self.models: dict[str, Model] = {}
        self.workers: list[Worker] = []

    def work(self, deed: Callable[..., Any], *given: Any, **named: Any) -> Any:
        return self.room.database.transact(lambda conn: deed(conn, *given, **named))

    @initialize(count=st.integers(3, 8))
    def publish(self, count: int) -> None:
        for run_id in self.room.runs(self.automation, [{}] * count, at=NOW):
            self.models[run_id] = Model(run_id)

    def some(self, number: int, likely: list[Model]) -> Model:
        """Choose a run, mostly one of the likely ones."""
        among = likely if likely and number % 4 else list(self.models.values())
        return among[number // 4 % len(among)]

    def is_claimable(self, model: Model) -> bool:
        return model.status == "PENDING" and (model.due is None or model.due <= self.now + EARLY)

    def write(self, worker: Worker, record: Record) -> bool:
        """Write a record, and hold the verdict against the model; tell whether the claim held."""
        [verdict] = self.work(write_batch, [record], "w", self.now).verdicts
        holds = self.models[worker.run.claim.run_id].holds(worker.run.claim)
        assert verdict.standing is (Standing.WRITTEN if holds else Standing.FENCED)
        return holds

    def worker(self, number: int) -> Worker | None:
        """Choose a worker, mostly one whose claim holds; the others must be of no effect."""
        live = [each for each in self.workers if self.models[each.run.claim.run_id].holds(each.run.claim)]
        among = live if live and number % 4 else self.workers
        return among[number // 4 % len(among)] if among else None

    def rows(self, text: str) -> Sequence[Any]:
        return [row for row in self.room.all(text) if row[0] in self.models]

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        rows = self.rows(
            "SELECT id, status, lease, retry_count, failures, crash_count, stop_reason, lease_until, event,"
            " owner FROM automation_runs"
        )
        for row in rows:
            model = self.models[row.id]
            assert (row.status, row.lease) == (model.status, model.lease)
            assert (row.retry_count, row.failures, row.crash_count) == (
                model.retry_count,
                model.failures,
                model.crash_count,
            )
            assert (row.lease_until is not None) is (row.status == "RUNNING")
            assert tree(row.event) is None

    @invariant()
    def at_most_one_claim_of_a_run_holds(self) -> None:
        claims = {worker.run.claim for worker in self.workers}
        holding = [claim.run_id for claim in claims if self.models[claim.run_id].holds(claim)]
        assert len(holding) == len(set(holding))

    @invariant()
    def every_action_was_done_once(self) -> None:
        found: dict[str, list[int]] = {run_id: [] for run_id in self.models}
        for row in self.rows("SELECT run_id, position FROM run_actions ORDER BY run_id, position"):
            found[row.run_id].append(row.position)
        assert found == {model.id: model.done for model in self.models.values()}
        told = self.rows("SELECT resource_id, title FROM notifications WHERE title = 't'")
        assert len(told) == sum(len(model.done) for model in self.models.values())


class Lifecycle(Book):
    """What processes and people do; every claim that was ever given may be used at any time."""

    @rule(deed=st.sampled_from(DEEDS), number=pick, wait_s=waits)
    def happens(self, deed: str, number: int, wait_s: int) -> None:
        if number % 3 == 0:
            self.now += timedelta(seconds=wait_s)
        getattr(self, deed)(number, wait_s)

    def claim(self, number: int, wait_s: int) -> None:
        ready = [model for model in self.models.values() if self.is_claimable(model)]
        wanted = [self.some(each, ready) for each in several(number)]
        found = self.work(claim_runs, [model.id for model in wanted], Lessee("w", self.now, LEASE))
        expected = {model.id for model in wanted if self.is_claimable(model)}
        assert {run.claim.run_id for run in found} == expected
        for run in found:
            model = self.models[run.claim.run_id]
            assert run.claim.lease == model.lease + 1
            assert [done.position for done in run.finished] == model.done
            assert (run.retry_count, run.failures, run.crash_count) == (
                model.retry_count,
                model.failures,
                model.crash_count,
            )
            assert run.stop_reason == model.stop_reason
            model.status, model.lease, model.due = "RUNNING", run.claim.lease, None
            model.lease_until = self.now + LEASE
            self.workers.append(Worker(run, len(model.done) + 1))

    def finish_an_action(self, number: int, wait_s: int) -> None:
        if worker := self.worker(number):
            record = acted(worker.run, TELL, position=worker.next_position)
            if self.write(worker, record):
                model = self.models[worker.run.claim.run_id]
                model.done.append(worker.next_position)
                worker.next_position += 1
                if worker.run.failures or worker.run.crash_count:
                    model.failures = model.crash_count = 0

    def end(self, number: int, wait_s: int) -> None:
        status = ("SUCCEEDED", "FAILED", "DEAD_LETTER")[number % 3]
        if (worker := self.worker(number)) and self.write(worker, ended(worker.run, ENDINGS[status])):
            self.models[worker.run.claim.run_id].end(status)

    def retry(self, number: int, wait_s: int) -> None:
        if worker := self.worker(number):
            model = self.models[worker.run.claim.run_id]
            due = self.now + timedelta(seconds=wait_s)
            if self.write(worker, ended(worker.run, Retried(ERROR, due, model.failures + 1))):
                model.status, model.due = "PENDING", due
                model.retry_count, model.failures = model.retry_count + 1, model.failures + 1

    def hand_back(self, number: int, wait_s: int) -> None:
        due = self.now + timedelta(seconds=wait_s)
        if (worker := self.worker(number)) and self.write(worker, ended(worker.run, HandedBack(due))):
            model = self.models[worker.run.claim.run_id]
            model.status, model.due = "PENDING", due

    def die(self, number: int, wait_s: int) -> None:
        if self.workers:
            self.workers.pop(number % len(self.workers))

    def renew(self, number: int, wait_s: int) -> None:
        until = self.now + LEASE
        claims = sorted({worker.run.claim for worker in self.workers}, key=lambda each: each.run_id)
        kept = self.work(renew_leases, claims, until)
        holding = {claim.run_id for claim in claims if self.models[claim.run_id].holds(claim)}
        assert kept == holding
        for run_id in holding:
            self.models[run_id].lease_until = until

    def rescue(self, number: int, wait_s: int) -> None:
        expected = {
            model.id
            for model in self.models.values()
            if model.status == "RUNNING" and model.lease_until < self.now
        }
        seen = [
            lease
            for lease in self.work(expired_leases, now=self.now, most=1000)
            if lease.claim.run_id in self.models
        ]
        assert {lease.claim.run_id for lease in seen} == expected
        crashed = self.work(lock_expired, seen)
        spent = [run.claim for run in crashed if run.crash_count + 1 >= CRASHES_MAX]
        alive = [run.claim for run in crashed if run.claim not in spent]
        moved = self.work(rescue_runs, alive, now=self.now)
        buried = self.work(bury_runs, [(claim, ERROR) for claim in spent], now=self.now)
        assert moved | buried == expected
        for run_id in moved:
            model = self.models[run_id]
            model.status, model.due = "PENDING", None
            model.retry_count, model.failures = model.retry_count + 1, model.failures + 1
            model.crash_count += 1
        for run_id in buried:
            self.models[run_id].status = "DEAD_LETTER"
            self.models[run_id].crash_count += 1

    def replay(self, number: int, wait_s: int) -> None:
        failed = [model for model in self.models.values() if model.status in REPLAYED]
        wanted = {model.id: model for model in (self.some(each, failed) for each in several(number))}
        woken = self.work(replay_runs, list(wanted), now=self.now)
        expected = {run_id for run_id, model in wanted.items() if model.status in REPLAYED}
        assert {run.id for run in woken} == expected
        for run_id in expected:
            model = self.models[run_id]
            model.end("PENDING")
            model.due = None
            model.retry_count = model.failures = model.crash_count = 0

    def crash(self, number: int, wait_s: int) -> None:
        if worker := self.worker(number):
            self.workers.remove(worker)
            self.now = max(self.now, worker.run.started_at) + LEASE + timedelta(seconds=1)
            self.rescue(number, wait_s)

    def cancel_or_stop(self, number: int, wait_s: int) -> None:
        model = self.some(number, [])
        was_pending = model.status == "PENDING"
        may_stop = model.status == "RUNNING" and model.stop_reason is None
        assert (self.work(cancel_run, model.id, now=self.now) is not None) is was_pending
        assert self.work(stop_run, model.id, "CANCELLED") is may_stop
        if was_pending:
            model.status, model.due, model.stop_reason = "CANCELLED", None, "CANCELLED"
        if may_stop:
            model.stop_reason = "CANCELLED"


def test_no_order_of_events_breaks_a_run(room: Room) -> None:
    room.owner()
    automation = room.automation()
    examples, steps = STEPS[room.database.dialect]

    class Here(Lifecycle):
        def __init__(self) -> None:
            super().__init__(room, automation)

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=[Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
