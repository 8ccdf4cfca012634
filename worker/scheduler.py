"""The loop that hands waiting retries over to their queues when they are due.

It carries retry backoff and nothing else; the row's `next_attempt_at` is the truth, and an entry here only
wakes. Any number of schedulers may run: one pass is one MULTI under a lock with its owner's token, so that an
entry is handed over once. Where a pass dies half-way, nothing happened, and another scheduler goes on within
seconds.
"""

from typing import Any, Final
from uuid import uuid4

from redis.exceptions import WatchError
from rq.scripts import acquire_or_refresh_lock, release_lock
from rq_scheduler import Scheduler
from typing_extensions import override

from shared.beats import Pulse
from shared.faults import FaultPoint, passed
from shared.logs import get_logger
from shared.model.runs import QueueKind
from shared.process import StopFlag
from shared.queue import BadHandle, HandleQueue, parse_scheduled
from shared.redis_port import REDIS_ERRORS, PipelinePort
from worker.handles import HandleJob
from worker.pace import Every, Outage
from worker.presence import Link

LOCK_TTL_S: Final = 3
LONGEST_WAIT_S: Final = 0.25
LOCKED_WAIT_S: Final = 0.05
HEARTBEAT_S: Final = 10
BATCH: Final = 1000
BAD_KEPT: Final = 1000

log: Final = get_logger("scheduler")


class RetryScheduler(Scheduler):  # type: ignore[misc] # the library is untyped
    """An rq-scheduler on our entries, whose members name a queue and a run; no job stands behind them."""

    @override
    def __init__(self, link: Link, stop: StopFlag) -> None:
        """Hand over nothing yet; `run` does."""
        super().__init__(
            link.keys.queue(QueueKind.MAIN),
            connection=link.redis,
            interval=HEARTBEAT_S,
            job_class=HandleJob,
            name=link.name,
        )
        self.scheduler_key = link.keys.scheduler
        self.scheduler_lock_key = f"{link.keys.scheduler}_lock"
        self.scheduled_jobs_key = link.keys.scheduled
        self.redis_scheduler_namespace_prefix = f"{link.keys.scheduler}_instance:"
        self._link = link
        self._stop = stop
        self._queue = HandleQueue(link.redis, link.keys)
        self._token = uuid4().hex
        self._pulse = Pulse(link.keys, "scheduler", link.name)
        self._beat = Every(link.clock, HEARTBEAT_S)

    @override
    def run(self, burst: bool = False) -> None:
        """Hand over what comes due until the flag is raised. An outage costs time, a bug one pass."""
        outage = Outage("redis", self._stop)
        while not self._stop.is_raised():
            try:
                wait_s = self._turn()
            except REDIS_ERRORS as error:
                outage.endure(error)
            except Exception as error:
                log.exception("scheduler_pass_failed")
                outage.endure(error)
            else:
                outage.end()
                self._stop.wait(wait_s)
        try:
            self.register_death()
            with self._link.redis.pipeline(transaction=False) as pipe:
                self._pulse.leave(pipe)
                pipe.execute()
        except REDIS_ERRORS as error:
            log.debug("death_not_registered", error=type(error).__name__)

    @override
    def heartbeat(self) -> None:
        """Keep our entry among the schedulers' for a few beats."""
        with self._link.redis.pipeline(transaction=True) as pipe:
            pipe.hset(self.key, "heartbeat", self._link.clock.now().isoformat())
            pipe.expire(self.key, HEARTBEAT_S * 3)
            self._pulse.beat(pipe, self._link.clock.now())
            pipe.execute()

    @override
    def acquire_lock(self) -> bool:
        """Take the lock in our name for three seconds; False while another scheduler holds it."""
        answer = acquire_or_refresh_lock(self._link.redis, self.scheduler_lock_key, self._token, LOCK_TTL_S)
        return answer != "taken"

    @override
    def remove_lock(self) -> None:
        """Give the lock up if it is still ours."""
        release_lock(self._link.redis, self.scheduler_lock_key, self._token)

    @override
    def enqueue_jobs(self) -> int:
        """Hand over what is due, all or nothing, if the lock is ours; give how many entries that were."""
        with self._link.redis.pipeline(transaction=True) as pipe:
            watched: Any = pipe
            watched.watch(self.scheduler_lock_key)
            if watched.get(self.scheduler_lock_key) != self._token.encode():
                return 0
            now = self._link.clock.now()
            due = watched.zrangebyscore(
                self.scheduled_jobs_key, "-inf", now.timestamp(), start=0, num=BATCH, withscores=True
            )
            if not due:
                return 0
            passed(FaultPoint.SCHEDULER_BEFORE_HAND_OVER)
            watched.multi()
            watched.zrem(self.scheduled_jobs_key, *(member for member, _ in due))
            self._hand_over(pipe, [member for member, _ in due])
            self._set_aside(pipe, [entry for entry in due if _parse(entry[0]) is None])
            try:
                watched.execute()
            except WatchError:
                log.warning("scheduler_lock_lost")
                return 0
        return len(due)

    def _turn(self) -> float:
        """Do what is due; give how long to wait before the next turn."""
        if self._beat.is_due():
            self.heartbeat()
        head = self._link.redis.zrange(self.scheduled_jobs_key, 0, 0, withscores=True)
        if not head:
            return LONGEST_WAIT_S
        early_s: float = head[0][1] - self._link.clock.now().timestamp()
        if early_s > 0:
            return min(early_s, LONGEST_WAIT_S)
        if not self.acquire_lock():
            return LOCKED_WAIT_S
        try:
            count = self.enqueue_jobs()
        finally:
            self.remove_lock()
        log.debug("retries_handed_over", count=count)
        return 0.0

    def _hand_over(self, pipe: PipelinePort, members: list[bytes]) -> None:
        now = self._link.clock.now()
        entries = [entry for member in members if (entry := _parse(member)) is not None]
        for kind in QueueKind:
            run_ids = [run_id for found, run_id in entries if found is kind]
            if run_ids:
                self._queue.add_to(pipe, kind, run_ids, now)

    def _set_aside(self, pipe: PipelinePort, bad: list[tuple[bytes, float]]) -> None:
        """Keep the last thousand entries that are none of ours, for a person to look at."""
        if bad:
            aside = f"{self.scheduled_jobs_key}:bad"
            pipe.zadd(aside, dict(bad))
            pipe.zremrangebyrank(aside, 0, -BAD_KEPT - 1)
            log.warning("scheduler_entries_set_aside", count=len(bad), first=repr(bad[0][0])[:100])


def _parse(member: bytes) -> tuple[QueueKind, str] | None:
    try:
        return parse_scheduled(member)
    except BadHandle:
        return None
