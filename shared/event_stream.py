"""The stream of events, read by people: entries, stretches of it, and how far the matcher is with them.

Nothing here is taken, acknowledged or changed. Redis' own errors are raised.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from redis.exceptions import ResponseError

from shared.keys import GROUP, Keys
from shared.model.stamps import MAX_MS, MAX_SEQ, Stamp, format_stamp, parse_stamp
from shared.redis_port import Entry, Fields, RedisPort
from shared.time.clock import epoch_ms

FIRST: Final[Stamp] = (0, 0)
LAST: Final[Stamp] = (MAX_MS, MAX_SEQ)

_NO_STREAM: Final = "no such key"


class EntryState(StrEnum):
    """How far an entry has come."""

    UNREAD = "unread"
    PENDING = "pending"
    TAKEN = "taken"
    DEAD = "dead"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Reach:
    """From which entry to which, both included."""

    first: Stamp = FIRST
    last: Stamp = LAST


def reach_between(begin: datetime | None, end: datetime | None) -> Reach:
    """Give what was published from `begin` on and before `end`, to the millisecond; None is no bound."""
    first = FIRST if begin is None else (min(max(0, epoch_ms(begin)), MAX_MS), 0)
    last = LAST if end is None else (min(epoch_ms(end) - 1, MAX_MS), MAX_SEQ)
    return Reach(first, last if last >= FIRST else (0, 0))


def find_entry(client: RedisPort, keys: Keys, stamp: Stamp) -> Fields | None:
    """Give the fields of one entry; None where it is not on the stream."""
    entry_id = format_stamp(stamp)
    found = client.xrange(keys.stream, min=entry_id, max=entry_id)
    return found[0][1] if found else None


def was_trimmed(client: RedisPort, keys: Keys, stamp: Stamp) -> bool:
    """Tell whether an entry that is not there lies before all that are: the stream was cut beyond it."""
    try:
        about = client.xinfo_stream(keys.stream)
    except ResponseError as error:
        if _NO_STREAM not in str(error):
            raise
        return False
    first = about["first-entry"]
    if first is None:
        return stamp <= _stamp(about["last-generated-id"])
    return stamp < _stamp(first[0])


def states_of(client: RedisPort, keys: Keys, entry_ids: Sequence[str]) -> dict[str, EntryState]:
    """Say of entries that are on the stream whether the matcher has them unread, at hand, or behind it."""
    if not entry_ids:
        return {}
    with client.pipeline(transaction=False) as pipe:
        pipe.xinfo_groups(keys.stream)
        for entry_id in entry_ids:
            pipe.xpending_range(keys.stream, GROUP, min=entry_id, max=entry_id, count=1)
        groups, *pending = pipe.execute(raise_on_error=False)
    group = next((each for each in _listed(groups) if each["name"] == GROUP.encode()), None)
    if group is None:
        return dict.fromkeys(entry_ids, EntryState.UNREAD)
    delivered = _stamp(group["last-delivered-id"])
    return {
        entry_id: _state(parse_stamp(entry_id), delivered, _listed(held))
        for entry_id, held in zip(entry_ids, pending, strict=True)
    }


def forward(client: RedisPort, keys: Keys, reach: Reach, page: int) -> Iterator[list[Entry]]:
    """Give the entries of a stretch in pages, the oldest first."""
    start = format_stamp(reach.first)
    while entries := client.xrange(keys.stream, min=start, max=format_stamp(reach.last), count=page):
        yield entries
        start = f"({entries[-1][0].decode()}"


def backward(client: RedisPort, keys: Keys, reach: Reach, page: int) -> Iterator[list[Entry]]:
    """Give the entries of a stretch in pages, the newest first."""
    end = format_stamp(reach.last)
    while entries := client.xrevrange(keys.stream, max=end, min=format_stamp(reach.first), count=page):
        yield entries
        end = f"({entries[-1][0].decode()}"


def _state(stamp: Stamp, delivered: Stamp, held: Sequence[Any]) -> EntryState:
    if stamp > delivered:
        return EntryState.UNREAD
    return EntryState.PENDING if held else EntryState.TAKEN


def _listed(answer: Any) -> Sequence[Any]:
    """Give an answer's items; none where stream or group are not there."""
    if isinstance(answer, ResponseError):
        return ()
    if isinstance(answer, Exception):
        raise answer
    found: Sequence[Any] = answer
    return found


def _stamp(entry_id: bytes) -> Stamp:
    """Read an entry id, however far in the future it claims to be."""
    ms, _, seq = entry_id.decode().partition("-")
    return int(ms), int(seq)
