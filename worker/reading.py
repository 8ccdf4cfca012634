"""The worker's side of the queues: handles are taken, acknowledged, pushed back, and found when left behind.

A handle that is taken stands in its queue's intermediate list until it is acknowledged. One that stands there
for 10 seconds was left behind by a process that died, or its answer was lost on the way: it goes back to its
queue. That may wake a run twice, which starts nothing twice.
"""

from collections.abc import Sequence
from typing import Final

from rq import Queue
from rq.intermediate_queue import IntermediateQueue

from shared.keys import Keys
from shared.logs import get_logger
from shared.model.runs import QueueKind
from shared.observations import Measure, Observations
from shared.queue import Handle, HandleQueue
from shared.redis_port import PipelinePort, RedisPort
from shared.time.clock import Clock
from worker.handles import HandleJob, read_handle

MAIN_PER_BULK: Final = 3
LEFT_BEHIND_S: Final = 10.0
SWEPT_AT_ONCE: Final = 1000
BAD_COUNTER: Final = "handles_bad"

# KEYS: intermediate list, queue, the handle's hash. Answers 0: somebody else was first; 1: dropped; 2: back.
PUSH_BACK: Final = """
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 0 then return 0 end
if redis.call('EXISTS', KEYS[3]) == 0 then return 1 end
redis.call('LPUSH', KEYS[2], ARGV[1])
return 2
"""

log: Final = get_logger("worker")


class HandleReader:
    """Takes handles from the two queues. Every method raises what Redis raises when it is away."""

    def __init__(self, client: RedisPort, keys: Keys, clock: Clock) -> None:
        """Use `client`, which must not repeat commands on its own."""
        self._client = client
        self._keys = keys
        self._clock = clock
        self._queue = HandleQueue(client, keys)
        self._main_in_a_row = 0
        self._seen_at: dict[tuple[QueueKind, bytes], float] = {}

    def take(self, timeout_s: float) -> HandleJob | None:
        """Take the next handle, one bulk for every three others; None when none came within the time."""
        bulk_first = self._main_in_a_row >= MAIN_PER_BULK
        order = (QueueKind.BULK, QueueKind.MAIN) if bulk_first else (QueueKind.MAIN, QueueKind.BULK)
        for kind in order:
            member = self._client.lmove(self._list(kind), self._intermediate(kind))
            if member is not None:
                return self._read(kind, member)
        main = QueueKind.MAIN
        member = self._client.blmove(self._list(main), self._intermediate(main), timeout_s)
        return None if member is None else self._read(main, member)

    def acknowledge(self, job: HandleJob, rest: Sequence[str]) -> None:
        """Remove a handle and push what was not claimed of it to the front, in one MULTI.

        What is pushed keeps the handle's stamp, so that the queue still tells how far it has come.
        """
        with self._client.pipeline(transaction=True) as pipe:
            self._remove(pipe, job)
            if job.handle is not None:
                self._queue.put_back(pipe, job.handle.kind, rest, job.handle.at)
                self._note_wait(pipe, job.handle, len(job.handle.run_ids) - len(rest))
            pipe.execute()

    def _note_wait(self, pipe: PipelinePort, handle: Handle, runs: int) -> None:
        observed = Observations(self._keys)
        observed.add(Measure.QUEUE_WAIT, self._clock.now() - handle.at, runs)
        observed.add_to(pipe)

    def drop(self, job: HandleJob) -> None:
        """Remove and count a handle that is none of ours."""
        with self._client.pipeline(transaction=True) as pipe:
            self._remove(pipe, job)
            pipe.incr(self._keys.count(BAD_COUNTER))
            pipe.execute()
        log.warning("handle_dropped", handle=repr(job.member)[:100], reason=job.fault)

    def push_back(self, kind: QueueKind, member: bytes) -> None:
        """Put a handle that was taken back to the front of its queue, or drop it where its hash is gone."""
        key = HandleJob.redis_job_namespace_prefix.encode() + member
        self._client.eval(PUSH_BACK, 3, self._intermediate(kind), self._list(kind), key, member)

    def sweep(self) -> None:
        """Push back what was seen in an intermediate list 10 s ago and still stands there."""
        now = self._clock.monotonic()
        seen_at: dict[tuple[QueueKind, bytes], float] = {}
        for kind in QueueKind:
            for member in self._client.lrange(self._intermediate(kind), 0, SWEPT_AT_ONCE - 1):
                first = self._seen_at.get((kind, member), now)
                if now - first < LEFT_BEHIND_S:
                    seen_at[kind, member] = first
                    continue
                self.push_back(kind, member)
                log.warning("handle_pushed_back", handle=repr(member)[:100])
        self._seen_at = seen_at

    def _read(self, kind: QueueKind, member: bytes) -> HandleJob:
        self._main_in_a_row = self._main_in_a_row + 1 if kind is QueueKind.MAIN else 0
        return read_handle(self._client, kind, member)

    def _remove(self, pipe: PipelinePort, job: HandleJob) -> None:
        pipe.lrem(self._intermediate(job.found_in), 1, job.member)
        pipe.unlink(job.hash_key)

    def _list(self, kind: QueueKind) -> str:
        return Queue.redis_queue_namespace_prefix + self._keys.queue(kind)

    def _intermediate(self, kind: QueueKind) -> str:
        return IntermediateQueue.get_intermediate_queue_key(self._list(kind))
