"""The consumer group's side of the event stream: what is new, what was left behind, what was lost.

Each process reads under a name of its own. What it read and did not acknowledge is read again: by itself
after a reply was lost, by another one after it died.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from redis.exceptions import ResponseError

from matcher.gaps import find_gap
from shared.beats import Pulse
from shared.keys import GROUP, Keys
from shared.logs import get_logger
from shared.redis_port import Fields, RedisPort

BLOCK_MS: Final = 1000
CONSUMER_KEPT: Final = timedelta(days=1)

_GONE: Final = ("NOGROUP", "UNBLOCKED", "no such key")
_BUSY: Final = "BUSYGROUP"

# Between the look and the deletion something may have been read; then the consumer stays.
_DELETE_CONSUMER: Final = """
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
"""

log = get_logger("matcher")


class Arrival(StrEnum):
    """Whether an entry was handed out for the first time."""

    FRESH = "fresh"
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class Delivery:
    """An entry as it was handed to us. `fields` is None when it was trimmed away before we had it."""

    entry_id: str
    fields: Fields | None
    arrival: Arrival
    times: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What one look at the stream gave. `version` is the index's, read after the entries."""

    deliveries: tuple[Delivery, ...]
    version: int


class Stream:
    """One consumer of the group. Its methods raise Redis' errors, and nothing is lost by that."""

    def __init__(self, client: RedisPort, keys: Keys, consumer: str) -> None:
        """Read as `consumer`, a name that no other process has or had."""
        self._client = client
        self._keys = keys
        self._consumer = consumer
        self._gap_after: str | None = None
        self._pulse = Pulse(keys, "matcher", consumer)

    def beat(self, now: datetime) -> None:
        """Show that this consumer lives; while it waits for entries, Redis itself may not know of it."""
        with self._client.pipeline(transaction=False) as pipe:
            self._pulse.beat(pipe, now)
            pipe.execute()

    def join(self) -> None:
        """Make the group at the very beginning of the stream, unless it is there."""
        try:
            self._client.xgroup_create(self._keys.stream, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if _BUSY not in str(error):
                raise
            return
        log.info("group_created", stream=self._keys.stream)

    def read(self, most: int, block_ms: int = BLOCK_MS) -> Reading:
        """Give up to `most` new entries, waiting at most `block_ms` for the first one."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.xinfo_stream(self._keys.stream)
            pipe.xinfo_groups(self._keys.stream)
            pipe.xreadgroup(GROUP, self._consumer, {self._keys.stream: ">"}, count=most, block=block_ms)
            pipe.get(self._keys.index_version)
            about, groups, answer, version = pipe.execute(raise_on_error=False)
        if _is_gone(answer):
            self.join()
            return Reading((), _number(version))
        entries = [entry for _, found in _answered(answer) or () for entry in found]
        deliveries = tuple(
            Delivery(entry_id.decode(), fields or None, Arrival.FRESH, 1) for entry_id, fields in entries
        )
        self._note_gap(about, groups, deliveries)
        return Reading(deliveries, _number(version))

    def read_own(self, most: int) -> Reading:
        """Give up to `most` entries that were handed to us and never acknowledged, oldest first."""
        pending = self._pending(most, consumername=self._consumer)
        with self._client.pipeline(transaction=False) as pipe:
            for each in pending:
                pipe.xrange(self._keys.stream, min=each["message_id"], max=each["message_id"])
            pipe.get(self._keys.index_version)
            *found, version = pipe.execute()
        deliveries = (
            _again(each, entries[0][1] if entries else None, each["times_delivered"])
            for each, entries in zip(pending, found, strict=True)
        )
        return Reading(tuple(deliveries), _number(version))

    def reclaim(self, most: int, idle: timedelta) -> Reading:
        """Take over up to `most` entries that nobody has acknowledged or kept for `idle`, oldest first."""
        idle_ms = int(idle.total_seconds() * 1000)
        pending = {each["message_id"]: each for each in self._pending(most, idle=idle_ms)}
        claimed: dict[bytes, Fields] = {}
        if pending:
            answer = self._client.xclaim(
                self._keys.stream,
                GROUP,
                consumername=self._consumer,
                min_idle_time=idle_ms,
                message_ids=list(pending),
            )
            claimed = {entry_id: fields for entry_id, fields in answer if entry_id is not None}
        with self._client.pipeline(transaction=False) as pipe:
            for entry_id in pending:
                pipe.xrange(self._keys.stream, min=entry_id, max=entry_id)
            pipe.get(self._keys.index_version)
            *found, version = pipe.execute()
        there = {entry_id for entry_id, entries in zip(pending, found, strict=True) if entries}
        deliveries = (
            _again(each, claimed.get(entry_id), each["times_delivered"] + 1)
            for entry_id, each in pending.items()
            if entry_id in claimed or entry_id not in there
        )
        return Reading(tuple(deliveries), _number(version))

    def keep(self, entry_ids: Sequence[str]) -> None:
        """Show that entries handed to us are still being worked on, so that nobody takes them over."""
        if entry_ids:
            self._client.xclaim(
                self._keys.stream,
                GROUP,
                consumername=self._consumer,
                min_idle_time=0,
                message_ids=list(entry_ids),
                justid=True,
            )

    def forget_consumers(self, idle: timedelta = CONSUMER_KEPT) -> int:
        """Delete the consumers that were silent for `idle` and have nothing pending; give how many."""
        try:
            consumers = self._client.xinfo_consumers(self._keys.stream, GROUP)
        except ResponseError as error:
            if not _is_gone(error):
                raise
            return 0
        idle_ms = idle.total_seconds() * 1000
        return sum(
            self._delete(each["name"])
            for each in consumers
            if each["pending"] == 0 and each["idle"] >= idle_ms and each["name"] != self._consumer.encode()
        )

    def leave(self) -> None:
        """Delete this consumer; with something pending it stays, for others to take over."""
        with self._client.pipeline(transaction=False) as pipe:
            self._pulse.leave(pipe)
            pipe.execute()
        self._delete(self._consumer)

    def _delete(self, consumer: str | bytes) -> int:
        try:
            deleted: int = self._client.eval(_DELETE_CONSUMER, 1, self._keys.stream, GROUP, consumer)
        except ResponseError as error:
            if not _is_gone(error):
                raise
            return 0
        return deleted

    def _pending(self, most: int, **which: Any) -> list[dict[str, Any]]:
        try:
            return self._client.xpending_range(
                self._keys.stream, GROUP, min="-", max="+", count=most, **which
            )
        except ResponseError as error:
            if not _is_gone(error):
                raise
            self.join()
            return []

    def _note_gap(self, about: Any, groups: Any, read: Sequence[Delivery]) -> None:
        """Log and count a gap once, however often it is seen."""
        if isinstance(about, Exception) or isinstance(groups, Exception):
            return
        group = next((each for each in groups if each["name"] == GROUP.encode()), None)
        if group is None:
            return
        gap = find_gap(about, group["last-delivered-id"], read[0].entry_id if read else None)
        if gap is not None and gap.after != self._gap_after:
            log.error("stream_gap_found", after=gap.after, before=gap.before)
            self._client.incr(self._keys.count("stream_gaps"))
            self._gap_after = gap.after


def _again(pending: dict[str, Any], fields: Fields | None, times: int) -> Delivery:
    return Delivery(pending["message_id"].decode(), fields or None, Arrival.AGAIN, times)


def _is_gone(answer: object) -> bool:
    """Tell whether an answer says that the group, or the stream with it, is not there."""
    return isinstance(answer, ResponseError) and any(text in str(answer) for text in _GONE)


def _answered(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def _number(answer: Any) -> int:
    return int(_answered(answer) or 0)
