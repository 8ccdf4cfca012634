"""What Redis tells: counters and durations, the stream, the queues, signs of life."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any, Final

from redis.exceptions import ResponseError

from shared.beats import count_beating
from shared.keys import GROUP, Keys, observed_key
from shared.metrics.counters import CounterKey, counter_keys
from shared.metrics.samples import Distribution, Reading, Sample
from shared.model.runs import QueueKind
from shared.observations import BUCKETS, SUM, Measure
from shared.presence import SUSPENDED, count_workers
from shared.queue import EPOCH, HandleQueue
from shared.redis_port import RedisPort

BEATING: Final = ("api", "matcher", "scheduler", "timers")
GONE: Final = "no such key"


@dataclass(frozen=True, slots=True)
class StreamState:
    """The stream and the matchers' group. `lag` is None where Redis cannot tell it.

    `oldest_ms` is when the first entry arrived that nobody has finished.
    """

    entries: int = 0
    lag: int | None = 0
    pending: int = 0
    oldest_ms: int | None = None


def read_redis(client: RedisPort, keys: Keys, now: datetime) -> Reading:
    """Read all of it; the cost does not grow with the stream or the queues. Raises what Redis raises."""
    theirs = _clock(client)
    counted = tuple(counter_keys(keys))
    values = client.mget([each.key for each in counted])
    samples = [
        *_counters(counted, values),
        *_stream(stream_state(client, keys), theirs),
        *_queues(client, keys, now),
        *_processes(client, keys, now),
        *_memory(client),
        Sample("knockon_clock_skew_seconds", (now - theirs).total_seconds(), ("redis",)),
    ]
    return Reading(tuple(samples), tuple(_distributions(client, keys)))


def _clock(client: RedisPort) -> datetime:
    seconds, micros = client.time()
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)


def _counters(counted: Sequence[CounterKey], values: Sequence[bytes | None]) -> Iterator[Sample]:
    for each, value in zip(counted, values, strict=True):
        yield Sample(each.metric, int(value or 0), each.labels)


def _distributions(client: RedisPort, keys: Keys) -> Iterator[Distribution]:
    with client.pipeline(transaction=False) as pipe:
        for measure in Measure:
            pipe.hgetall(observed_key(keys, measure))
        found: list[Mapping[bytes, bytes]] = pipe.execute()
    for measure, counts in zip(Measure, found, strict=True):
        name, _, outcome = measure.partition(":")
        below = accumulate(int(counts.get(bucket.encode(), 0)) for bucket in BUCKETS)
        yield Distribution(
            metric=f"knockon_{name}_seconds",
            buckets=tuple(zip(BUCKETS, map(float, below), strict=True)),
            sum=int(counts.get(SUM.encode(), 0)) / 1_000_000,
            labels=(outcome,) if outcome else (),
        )


def stream_state(client: RedisPort, keys: Keys) -> StreamState:
    """Look at the stream and the matchers' group; one that is not there holds nothing."""
    try:
        about: Mapping[str, Any] = client.xinfo_stream(keys.stream)
        groups = client.xinfo_groups(keys.stream)
    except ResponseError as error:
        if GONE not in str(error):
            raise
        return StreamState()
    entries, last = about["length"], about["last-generated-id"]
    group = next((each for each in groups if each["name"] == GROUP.encode()), None)
    if group is None:
        return StreamState(entries, entries, 0, _first_ms(client, keys, "-"))
    read = group["last-delivered-id"]
    pending = client.xpending_range(keys.stream, GROUP, min="-", max="+", count=1)
    held = _ms(pending[0]["message_id"]) if pending else None
    unread = None if read == last else _first_ms(client, keys, f"({read.decode()}")
    lag = 0 if read == last else group.get("lag")
    return StreamState(entries, lag, group["pending"], min(filter(None, (held, unread)), default=None))


def _first_ms(client: RedisPort, keys: Keys, start: str) -> int | None:
    """Give when the first entry from `start` on arrived. It is not read beyond its id's owner."""
    found = client.xrange(keys.stream, min=start, count=1)
    return _ms(found[0][0]) if found else None


def _ms(entry_id: bytes) -> int:
    return int(entry_id.split(b"-")[0])


def _stream(state: StreamState, theirs: datetime) -> Iterator[Sample]:
    yield Sample("knockon_stream_entries", state.entries)
    if state.lag is not None:
        yield Sample("knockon_stream_lag_entries", state.lag)
    yield Sample("knockon_stream_pending_entries", state.pending)
    age_s = 0.0 if state.oldest_ms is None else max(theirs.timestamp() - state.oldest_ms / 1000, 0.0)
    yield Sample("knockon_stream_lag_seconds", round(age_s, 3))


def _queues(client: RedisPort, keys: Keys, now: datetime) -> Iterator[Sample]:
    queue = HandleQueue(client, keys)
    for kind in QueueKind:
        head = queue.head_pushed_at(kind)
        is_told = head is not None and head != EPOCH
        age_s = max((now - head).total_seconds(), 0.0) if head is not None and is_told else 0.0
        yield Sample("knockon_queue_handles", queue.depth(kind), (kind,))
        yield Sample("knockon_queue_oldest_seconds", age_s, (kind,))
    with client.pipeline(transaction=False) as pipe:
        pipe.zcard(keys.scheduled)
        pipe.zcount(keys.scheduled, "-inf", now.timestamp())
        pipe.exists(SUSPENDED)
        waiting, due, suspended = pipe.execute()
    yield Sample("knockon_retries_waiting", waiting)
    yield Sample("knockon_due_rows", due, ("retries",))
    yield Sample("knockon_queue_suspended", suspended)


def _processes(client: RedisPort, keys: Keys, now: datetime) -> Iterator[Sample]:
    for part in BEATING:
        yield Sample("knockon_processes", count_beating(client, keys, part, now), (part,))
    yield Sample("knockon_processes", count_workers(client, keys), ("worker",))


def _memory(client: RedisPort) -> Iterator[Sample]:
    """Tell how full Redis is, if this user may ask."""
    try:
        memory = client.info("memory")
    except ResponseError:
        return
    yield Sample("knockon_redis_memory_bytes", memory["used_memory"])
    yield Sample("knockon_redis_memory_limit_bytes", memory.get("maxmemory", 0))
