"""The stream of entries that could not be taken: written by the matcher, listed and put back by the command.

An entry keeps its fields as they were. What is not UTF-8, or has a name of ours, stands in `raw` as a JSON
list of base64 pairs. An entry beyond the size that is ever taken is cut, marked `cut`, and never put back.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

import orjson
from redis.exceptions import ResponseError

from shared.keys import Keys
from shared.model.events import MAX_ENTRY_BYTES
from shared.model.stamps import Stamp, format_stamp
from shared.redis_port import Entry, Fields, PipelinePort, RedisPort

MAXLEN: Final = 100_000
CUT_BYTES: Final = 4096
CUT_FIELDS: Final = 32
MAX_MOVED_FIELDS: Final = 3_900  # a script's stack holds 8,000 names and values

PAGE: Final = 100
LOOKED_AT_MOST: Final = 20_000
GONE: Final = "is not there"

_OWN: Final = (b"reason", b"error", b"entry", b"raw", b"cut")

# The entry must be there still: of two who put it back, one does.
_REQUEUE: Final = """
if #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 2))
return redis.call('XDEL', KEYS[1], ARGV[1])
"""


@dataclass(frozen=True, slots=True)
class Burial:
    """An entry of the event stream that is given up, why, and the class of the error that said so."""

    entry_id: str
    fields: Fields
    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class DeadEntry:
    """A dead entry as people see it; `fields` not in UTF-8 are shown with replacement characters."""

    id: str
    entry_id: str
    reason: str
    error: str
    fields: Mapping[str, str]
    is_cut: bool


def bury(pipe: PipelinePort, keys: Keys, burials: Iterable[Burial]) -> None:
    """Write entries to the dead stream as part of the caller's MULTI."""
    for burial in burials:
        pipe.xadd(keys.dead_stream, _encode(burial), maxlen=MAXLEN, approximate=True)


def list_dead(client: RedisPort, keys: Keys, most: int) -> list[DeadEntry]:
    """Give at most `most` dead entries, newest first."""
    return [_shown(entry) for entry in client.xrevrange(keys.dead_stream, count=most)]


def find_dead(client: RedisPort, keys: Keys, ids: Iterable[str]) -> dict[str, DeadEntry]:
    """Give dead entries by id; what is not there is left out."""
    with client.pipeline(transaction=False) as pipe:
        for dead_id in ids:
            pipe.xrange(keys.dead_stream, min=dead_id, max=dead_id)
        found = [_shown(entry) for answer in pipe.execute() for entry in answer]
    return {entry.id: entry for entry in found}


def find_burial(client: RedisPort, keys: Keys, stamp: Stamp) -> DeadEntry | None:
    """Give what is left of an entry of the event stream that was given up; None where it was not.

    An entry is buried soon after it was written: a look at what died from then on is enough, if not at all.
    """
    wanted = format_stamp(stamp).encode()
    start = str(stamp[0])
    for _ in range(LOOKED_AT_MOST // PAGE):
        entries = client.xrange(keys.dead_stream, min=start, count=PAGE)
        found = next((entry for entry in entries if entry[1].get(b"entry") == wanted), None)
        if found is not None or not entries:
            return None if found is None else _shown(found)
        start = f"({entries[-1][0].decode()}"
    return None


def requeue(client: RedisPort, keys: Keys, ids: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Publish dead entries anew and drop them here, one by one: give each id, and why it stays, if it does.

    Raises what Redis raises while it is away; the ids given before that are done.
    """
    for dead_id in ids:
        yield dead_id, _requeue_one(client, keys, dead_id)


def _requeue_one(client: RedisPort, keys: Keys, dead_id: str) -> str | None:
    found = client.xrange(keys.dead_stream, min=dead_id, max=dead_id)
    if not found:
        return GONE
    fields = found[0][1]
    if b"cut" in fields:
        return "was too large to be kept whole"
    try:
        original = _original(fields)
    except ValueError:
        return "holds a field raw that cannot be read"
    if len(original) > MAX_MOVED_FIELDS:
        return f"has {len(original):,} fields; at most {MAX_MOVED_FIELDS:,} can be put back"
    flat = [part for pair in original.items() for part in pair]
    try:
        moved: int = client.eval(_REQUEUE, 2, keys.dead_stream, keys.stream, dead_id, *flat)
    except ResponseError as error:
        return f"was refused by Redis: {error}"
    return None if moved else GONE


def _encode(burial: Burial) -> dict[str, str | bytes]:
    fields = burial.fields
    size = sum(map(len, fields)) + sum(map(len, fields.values()))
    is_cut = size > MAX_ENTRY_BYTES
    if is_cut:
        kept = islice(fields.items(), CUT_FIELDS)
        fields = {name[:CUT_BYTES]: value[:CUT_BYTES] for name, value in kept}
    plain = {name: value for name, value in fields.items() if _is_plain(name, value)}
    raw = [
        [base64.b64encode(name).decode(), base64.b64encode(value).decode()]
        for name, value in fields.items()
        if name not in plain
    ]
    written: dict[str, str | bytes] = {name.decode(): value for name, value in plain.items()}
    written |= {"reason": burial.reason, "error": burial.error, "entry": burial.entry_id}
    if raw:
        written["raw"] = orjson.dumps(raw)
    if is_cut:
        written["cut"] = str(size)
    return written


def _is_plain(name: bytes, value: bytes) -> bool:
    if name in _OWN:
        return False
    try:
        name.decode()
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _original(fields: Fields) -> dict[bytes, bytes]:
    """Give an entry's fields as they were. Raises ValueError where `raw` is not ours."""
    try:
        pairs = orjson.loads(fields.get(b"raw", b"[]"))
        restored = {_unpacked(name): _unpacked(value) for name, value in pairs}
    except (TypeError, ValueError) as error:
        raise ValueError("raw is no list of base64 pairs") from error
    return {name: value for name, value in fields.items() if name not in _OWN} | restored


def _unpacked(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _shown(entry: Entry) -> DeadEntry:
    dead_id, fields = entry
    try:
        original = _original(fields)
    except ValueError:
        original = dict(fields)
    return DeadEntry(
        id=dead_id.decode(),
        entry_id=fields.get(b"entry", b"").decode(errors="replace"),
        reason=fields.get(b"reason", b"").decode(errors="replace"),
        error=fields.get(b"error", b"").decode(errors="replace"),
        fields={
            name.decode(errors="replace"): value.decode(errors="replace") for name, value in original.items()
        },
        is_cut=b"cut" in fields,
    )
