"""The queue port: handles, which carry run ids and nothing else, on RQ's lists. Losing them all loses no run.

A handle is the RQ job `run-automation` with at most 50 run ids, as JSON. Its id holds its queue and the
instant it was pushed, so that the head of a queue tells how far the queue has come. Nobody calls what a
payload names.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

import orjson
from rq import Queue
from rq.job import Job
from rq.registry import CanceledJobRegistry, DeferredJobRegistry, FailedJobRegistry, FinishedJobRegistry

from shared.keys import Keys
from shared.model.runs import QueueKind
from shared.redis_port import PipelinePort, RedisPort

HANDLE_SIZE: Final = 50
PAGE: Final = 1000
FUNCTION: Final = "run-automation"
MAX_PAYLOAD_BYTES: Final = 16_384
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
REGISTRIES: Final = (CanceledJobRegistry, DeferredJobRegistry, FailedJobRegistry, FinishedJobRegistry)
_RUN_ID: Final = re.compile(r"[0-9A-Za-z-]{1,64}")
_ID: Final = re.compile(r"(main|bulk)-([0-9]{1,17})-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Handle:
    """What a handle says: which runs, and since when they wait. `at` is also on their rows."""

    id: str
    kind: QueueKind
    run_ids: tuple[str, ...]
    at: datetime


class BadHandle(Exception):
    """A handle that is not one of ours; it is dropped and counted, since the rows know better."""


class HandleQueue:
    """Pushes handles and tells how far the queues have come. Every push is one MULTI."""

    def __init__(self, client: RedisPort, keys: Keys) -> None:
        """Use `client`, which must not repeat commands on its own."""
        self._client = client
        self._keys = keys

    def push(self, kind: QueueKind, run_ids: Sequence[str], at: datetime) -> None:
        """Append runs to a queue, in handles of at most 50. A second push makes a harmless second handle."""
        if run_ids:
            with self._client.pipeline(transaction=True) as pipe:
                self.add_to(pipe, kind, run_ids, at)
                pipe.execute()

    def add_to(self, pipe: PipelinePort, kind: QueueKind, run_ids: Sequence[str], at: datetime) -> None:
        """Append runs to a queue as part of the caller's MULTI."""
        name = self._keys.queue(kind)
        for chunk in _chunks(run_ids):
            handle_id = make_handle_id(kind, at)
            pipe.hset(Job.key_for(handle_id), mapping=_encode(name, chunk, at))
            pipe.rpush(Queue.redis_queue_namespace_prefix + name, handle_id)
        pipe.sadd(Queue.redis_queues_keys, Queue.redis_queue_namespace_prefix + name)

    def put_back(self, pipe: PipelinePort, kind: QueueKind, run_ids: Sequence[str], at: datetime) -> None:
        """Push runs to the front of their queue with their old stamp, as part of the caller's MULTI."""
        name = self._keys.queue(kind)
        for chunk in _chunks(run_ids):
            handle_id = make_handle_id(kind, at)
            pipe.hset(Job.key_for(handle_id), mapping=_encode(name, chunk, at))
            pipe.lpush(Queue.redis_queue_namespace_prefix + name, handle_id)

    def schedule_in(self, pipe: PipelinePort, waits: Iterable[tuple[QueueKind, str, datetime]]) -> None:
        """Enter runs with the scheduler, which pushes each when it is due, as part of the caller's commands.

        A second entry of a run moves the first.
        """
        members = {f"{kind}-{run_id}": at.timestamp() for kind, run_id, at in waits}
        if members:
            pipe.zadd(self._keys.scheduled, members)

    def depth(self, kind: QueueKind) -> int:
        """Count the handles that wait in a queue."""
        return self._client.llen(Queue.redis_queue_namespace_prefix + self._keys.queue(kind))

    def head_pushed_at(self, kind: QueueKind) -> datetime | None:
        """Give the instant at which the queue's first handle was pushed, or None when the queue is empty.

        A head that is none of ours counts as pushed at the epoch: it will be dropped, so nothing behind it
        is lost.
        """
        head = self._client.lindex(Queue.redis_queue_namespace_prefix + self._keys.queue(kind), 0)
        return None if head is None else _pushed_at_or_none(head) or EPOCH

    def push_times(self, kind: QueueKind) -> list[datetime]:
        """Give when each handle in a queue was pushed, earliest first; what is none of ours is left out.

        Handles that are taken or added meanwhile may be in or out; none of the others is missed.
        """
        name = Queue.redis_queue_namespace_prefix + self._keys.queue(kind)
        found: list[datetime] = []
        end = -1
        # Counted from the tail: takers shorten the list at its head, which leaves these indices as they are.
        while page := self._client.lrange(name, end - PAGE + 1, end):
            found += [at for member in page if (at := _pushed_at_or_none(member))]
            end -= PAGE
        return sorted(found)

    def drop_leftovers(self) -> int:
        """Drop what stands in RQ's registries of ended jobs, where only a foreign worker puts any.

        Gives how many there were. Their runs are not lost: the watchdog gives each another handle.
        """
        names = [
            registry.key_template.format(self._keys.queue(kind))
            for registry in REGISTRIES
            for kind in QueueKind
        ]
        dropped = 0
        for name in names:
            while members := self._client.zrange(name, 0, PAGE - 1):
                with self._client.pipeline(transaction=True) as pipe:
                    pipe.delete(*(Job.key_for(member.decode(errors="replace")) for member in members))
                    pipe.zrem(name, *members)
                    pipe.execute()
                dropped += len(members)
        return dropped


def make_handle_id(kind: QueueKind, at: datetime) -> str:
    """Make a handle's id: its queue, its push time in microseconds, and chance."""
    return f"{kind}-{(at - EPOCH) // timedelta(microseconds=1)}-{uuid4().hex[:12]}"


def pushed_at(handle_id: str) -> datetime:
    """Read the push time from a handle's id. Raises BadHandle for an id that is not one of ours."""
    return _parse_id(handle_id)[1]


def decode_handle(handle_id: str, fields: Mapping[bytes, bytes]) -> Handle:
    """Read a handle from its hash. Raises BadHandle for anything that `push` would not have written."""
    kind, at = _parse_id(handle_id)
    try:
        packed = fields[b"data"]
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, MAX_PAYLOAD_BYTES)
        if unpacker.unconsumed_tail:
            raise BadHandle("payload too large")
        if not unpacker.eof or unpacker.unused_data:
            raise BadHandle("payload cut or followed by something")
        function, _, _, said = orjson.loads(data)
        run_ids = said["run_ids"]
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise BadHandle(f"unreadable payload: {type(error).__name__}") from error
    if function != FUNCTION or not isinstance(run_ids, list) or not all(map(_is_run_id, run_ids)):
        raise BadHandle("not a list of run ids")
    if not 0 < len(run_ids) <= HANDLE_SIZE:
        raise BadHandle("no run ids, or too many")
    return Handle(handle_id, kind, tuple(run_ids), at)


def parse_scheduled(member: bytes) -> tuple[QueueKind, str]:
    """Read a scheduler entry: its queue and run id. Raises BadHandle for one `schedule_in` did not write."""
    try:
        kind, _, run_id = member.decode().partition("-")
        queue = QueueKind(kind)
    except ValueError as error:
        raise BadHandle("not a scheduler entry") from error
    if not _is_run_id(run_id):
        raise BadHandle("not a run id")
    return queue, run_id


def _pushed_at_or_none(member: bytes) -> datetime | None:
    try:
        return pushed_at(member.decode())
    except (BadHandle, UnicodeDecodeError):
        return None


def _parse_id(handle_id: str) -> tuple[QueueKind, datetime]:
    found = _ID.fullmatch(handle_id)
    if found is None:
        raise BadHandle("not one of our ids")
    return QueueKind(found[1]), EPOCH + timedelta(microseconds=int(found[2]))


def _is_run_id(value: object) -> bool:
    return isinstance(value, str) and _RUN_ID.fullmatch(value) is not None


def _encode(queue_name: str, run_ids: Sequence[str], at: datetime) -> dict[str, Any]:
    said = {"run_ids": list(run_ids), "at": at.isoformat()}
    stamp = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "created_at": stamp,
        "enqueued_at": stamp,
        "data": zlib.compress(orjson.dumps([FUNCTION, None, [], said]), 1),
        "origin": queue_name,
        "description": f"{len(run_ids)} runs",
        "status": "queued",
    }


def _chunks(run_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(run_ids), HANDLE_SIZE):
        yield run_ids[start : start + HANDLE_SIZE]
