"""The worker's loop: it takes a handle when the engine has room, has its runs claimed, and acknowledges it.

A handle is only a wake-up, so an outage costs time and no run: while SQL is away handles go back to their
queue, while Redis is away the loop waits. It ends when the process is asked to end or cannot go on; `failure`
tells which.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from rq import Queue, worker_registration
from rq.worker import WorkerStatus
from sqlalchemy.exc import DBAPIError
from typing_extensions import override

from shared.db.faults import is_data_fault
from shared.errors import Unavailable
from shared.faults import FaultPoint, passed
from shared.logs import get_logger
from shared.presence import SUSPENDED
from shared.process import StopFlag
from shared.redis_port import REDIS_ERRORS
from worker.handles import HandleJob
from worker.pace import Every, Outage
from worker.presence import Link, PresentWorker
from worker.reading import HandleReader

READ_S: Final = 1.0
ROOM_S: Final = 0.5
SUSPENSION_S: Final = 5.0
SUSPENDED_POLL_S: Final = 1.0
SWEEP_S: Final = 2.5
REGISTRY_S: Final = 60.0

log: Final = get_logger("worker")


class Drives(Protocol):
    """What the worker asks of the engine."""

    def window(self) -> int:
        """Give how many runs a claim may take now."""
        ...

    def wait_for_room(self, timeout_s: float) -> None:
        """Wait until that is above 0, or the time is over."""
        ...

    def take(self, run_ids: Sequence[str]) -> None:
        """Claim and start what can be claimed. Raises Unavailable when SQL is away."""
        ...

    def failure(self) -> str | None:
        """Say why the process must end, or None."""
        ...


class RunWorker(PresentWorker):
    """Reads handles for an engine, in one thread."""

    @override
    def __init__(self, link: Link, engine: Drives, stop: StopFlag) -> None:
        """Read nothing yet; `work` does."""
        super().__init__(link, stop)
        self.failure: str | None = None
        self._engine = engine
        self._reader = HandleReader(link.redis, link.keys, link.clock)
        self._redis_outage = Outage("redis", stop)
        self._sql_outage = Outage("sql", stop)
        self._suspension = Every(link.clock, SUSPENSION_S)
        self._sweep = Every(link.clock, SWEEP_S)
        self._registry = Every(link.clock, REGISTRY_S)

    @override
    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[HandleJob, Queue] | None:
        """Give the next handle, once there is room for a run of it; None when the loop must end."""
        while not self._is_over():
            self.check_for_suspension(burst=False)
            self.run_maintenance_tasks()
            self.heartbeat()
            self._engine.wait_for_room(ROOM_S)
            if self._engine.window() > 0 and (job := self._take()) is not None:
                return job, self.queues[0]
        return None

    @override
    def execute_job(self, job: Any, queue: Queue) -> None:
        """Have a handle's runs claimed, as many as there is room for, and acknowledge it.

        A handle that was taken twice finds its runs claimed, and ends.
        """
        try:
            self._drive(job)
        except REDIS_ERRORS as error:
            # It stands in the intermediate list, from where it comes back to its queue.
            log.warning("handle_left_behind", error=type(error).__name__)

    @override
    def check_for_suspension(self, burst: bool) -> None:
        """Read no further while `rq suspend` is in force; an outage counts as not suspended."""
        if not self._suspension.is_due():
            return
        while self._is_suspended() and not self._is_over():
            if self.get_state() != WorkerStatus.SUSPENDED:
                log.warning("worker_suspended", remedy="rq resume")
            self.set_state(WorkerStatus.SUSPENDED)
            self.heartbeat()
            self.stop.wait(SUSPENDED_POLL_S)
        self.set_state(WorkerStatus.IDLE)

    @property
    @override
    def should_run_maintenance_tasks(self) -> bool:
        """Leave the moment to our own loop."""
        return False

    @override
    def run_maintenance_tasks(self) -> None:
        """Forget workers that are gone, and find handles that were left behind. No job is ever failed."""
        try:
            if self._sweep.is_due():
                self._reader.sweep()
            if self._registry.is_due():
                for queue in self.queues:
                    worker_registration.clean_worker_registry(queue)
        except REDIS_ERRORS as error:
            log.debug("maintenance_failed", error=type(error).__name__)

    def _is_over(self) -> bool:
        if self.failure is None and (reason := self._engine.failure()) is not None:
            self.failure = reason
            log.error("worker_failed", reason=reason)
        return self.stop.is_raised() or self.failure is not None

    def _is_suspended(self) -> bool:
        try:
            return self.link.redis.exists(SUSPENDED) > 0
        except REDIS_ERRORS:
            return False

    def _take(self) -> HandleJob | None:
        try:
            job = self._reader.take(READ_S)
        except REDIS_ERRORS as error:
            self._redis_outage.endure(error)
            return None
        self._redis_outage.end()
        return job

    def _drive(self, job: HandleJob) -> None:
        if job.handle is None:
            self._reader.drop(job)
        elif self._is_over():
            self._reader.push_back(job.found_in, job.member)
        else:
            run_ids = list(job.handle.run_ids)
            room = max(1, self._engine.window())
            if self._claim(job, run_ids[:room]):
                passed(FaultPoint.HANDLE_BEFORE_ACK)
                self._reader.acknowledge(job, run_ids[room:])

    def _claim(self, job: HandleJob, run_ids: list[str]) -> bool:
        """Have runs claimed; False where the handle was dealt with because SQL could not."""
        try:
            self._engine.take(run_ids)
        except (Unavailable, DBAPIError) as error:
            if isinstance(error, DBAPIError) and is_data_fault(error):
                job.fault = "its run ids cannot be looked up"
                self._reader.drop(job)
                return False
            self._reader.push_back(job.found_in, job.member)
            self._sql_outage.endure(error)
            return False
        except Exception:
            # Runs may be held and not driven: only an end of this process frees them.
            log.exception("handle_failed")
            self.failure = "a handle could not be driven"
        else:
            self._sql_outage.end()
        return True
