"""Recorded events: what is on the stream of a workspace, for people, who see it masked (`shown_event`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from shared.dead_stream import DeadEntry, find_burial
from shared.errors import BadEvent, NotFound
from shared.event_stream import EntryState, Reach, backward, find_entry, states_of, was_trimmed
from shared.masking import mask_tree
from shared.model.events import Event, decode_entry, event_to_json
from shared.model.sizes import cut_for_show
from shared.model.stamps import MAX_SEQ, Stamp, format_stamp, parse_stamp
from shared.redis_port import Entry, Fields
from shared.services.backends import Backends

PAGE: Final = 100
LOOKED_AT_MOST: Final = 20_000
LISTED_BYTES: Final = 8_192
GONE: Final = "it is older than all that is left of the stream"


@dataclass(frozen=True, slots=True)
class SeenEntry:
    """An entry of the stream. Where no event can be read, `event` is None and `reason` says why.

    `workspace_id` is None where nobody can tell whose it was.
    """

    entry_id: str
    workspace_id: str | None
    state: EntryState
    event: Event | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events of a workspace, the newest first: of one type, within a stretch of the stream."""

    workspace_id: str
    reach: Reach
    most: int
    type: str | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events that were found, and from where to look on; None at the end of the stretch."""

    entries: Sequence[SeenEntry]
    next: Stamp | None


def see_entry(backends: Backends, workspace_id: str, entry_id: str) -> SeenEntry:
    """Find an entry of a workspace. Raises NotFound for one that never was there, or is another workspace's.

    Of one that was trimmed away nobody knows any more whose it was.
    """
    missing = NotFound(f"there is no entry {entry_id!r} of workspace {workspace_id!r} on the stream")
    try:
        stamp = parse_stamp(entry_id)
    except ValueError:
        raise missing from None
    found = _look(backends, stamp)
    if found is None or found.workspace_id not in (None, workspace_id):
        raise missing
    return found


def list_events(backends: Backends, query: EventQuery) -> EventPage:
    """Give the newest events that the query fits, from a look at no more than LOOKED_AT_MOST entries."""
    found: list[Entry] = []
    looked = 0
    wanted = query.workspace_id.encode(), query.type.encode() if query.type else None
    for page in backward(backends.redis, backends.keys, query.reach, PAGE):
        for at, entry in enumerate(page):
            found += [entry] if _fits(entry[1], wanted) else []
            if len(found) == query.most or looked + at + 1 == LOOKED_AT_MOST:
                return EventPage(_seen(backends, found), _before(parse_stamp(entry[0].decode())))
        looked += len(page)
    return EventPage(_seen(backends, found), None)


def shown_event(event: Event, most_bytes: int) -> dict[str, Any]:
    """Give an event in JSON types, masked, with its payload cut to a size."""
    document = event_to_json(event)
    return {**document, "payload": cut_for_show(mask_tree(document["payload"]), most_bytes)}


def masked_event(event: Event) -> Event:
    """Give an event as people may see it: a condition of theirs finds no more in it than they do."""
    return replace(event, payload=mask_tree(event.payload))


def _look(backends: Backends, stamp: Stamp) -> SeenEntry | None:
    client, keys = backends.redis, backends.keys
    entry_id = format_stamp(stamp)
    fields = find_entry(client, keys, stamp)
    dead = find_burial(client, keys, stamp)
    if fields is None:
        if dead is not None:
            return SeenEntry(entry_id, _owner_of(dead), EntryState.DEAD, None, dead.reason)
        is_gone = was_trimmed(client, keys, stamp)
        return SeenEntry(entry_id, None, EntryState.GONE, None, GONE) if is_gone else None
    (seen,) = _seen(backends, [(entry_id.encode(), fields)])
    if dead is None:
        return seen
    return replace(seen, state=EntryState.DEAD, event=None, reason=dead.reason)


def _seen(backends: Backends, entries: Sequence[Entry]) -> list[SeenEntry]:
    states = states_of(backends.redis, backends.keys, [entry_id.decode() for entry_id, _ in entries])
    return [_read(entry_id.decode(), fields, states[entry_id.decode()]) for entry_id, fields in entries]


def _read(entry_id: str, fields: Fields, state: EntryState) -> SeenEntry:
    owner = fields.get(b"workspaceId", b"").decode(errors="replace") or None
    try:
        event = decode_entry(entry_id, fields)
    except BadEvent as error:
        return SeenEntry(entry_id, owner, state, None, str(error))
    return SeenEntry(entry_id, owner, state, event)


def _fits(fields: Fields, wanted: tuple[bytes, bytes | None]) -> bool:
    workspace_id, type_ = wanted
    return fields.get(b"workspaceId") == workspace_id and (type_ is None or fields.get(b"type") == type_)


def _owner_of(dead: DeadEntry) -> str | None:
    return dead.fields.get("workspaceId") or None


def _before(stamp: Stamp) -> Stamp | None:
    """Give the greatest stamp before another one; None before the first."""
    ms, seq = stamp
    if seq:
        return ms, seq - 1
    return (ms - 1, MAX_SEQ) if ms else None
