"""What a set of deliveries holds: events, entries that are none, and entries that are gone. Pure.

Every run tells of its end on the stream, so half of the entries of a busy deployment are such echoes. Where
no automation listens for them they are set aside unread: they are about no subject either.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from matcher.index import Index
from matcher.stream import Arrival, Delivery
from shared.dead_stream import Burial
from shared.errors import BadEvent
from shared.model.events import Event, decode_entry
from shared.model.executed import EXECUTED

ECHO: Final = EXECUTED.encode()


@dataclass(slots=True)
class Decoded:
    """The deliveries, sorted out; `fresh` are the ids of the events that were never handed out before."""

    events: list[Event] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)
    burials: list[Burial] = field(default_factory=list)
    trimmed: list[str] = field(default_factory=list)
    unheard: list[str] = field(default_factory=list)


def decode(deliveries: Iterable[Delivery], index: Index) -> Decoded:
    """Sort deliveries out, in their order."""
    decoded = Decoded()
    for delivery in deliveries:
        if delivery.fields is None:
            decoded.trimmed.append(delivery.entry_id)
            continue
        if delivery.fields.get(b"type") == ECHO and not _is_heard(delivery.fields, index):
            decoded.unheard.append(delivery.entry_id)
            continue
        try:
            event = decode_entry(delivery.entry_id, delivery.fields)
        except BadEvent as error:
            decoded.burials.append(
                Burial(delivery.entry_id, delivery.fields, str(error), type(error).__name__)
            )
            continue
        decoded.events.append(event)
        if delivery.arrival is Arrival.FRESH:
            decoded.fresh.add(event.entry_id)
    return decoded


def _is_heard(fields: Mapping[bytes, bytes], index: Index) -> bool:
    """Tell whether an automation of the entry's workspace may want it; one that is odd is read in full."""
    try:
        workspace_id = fields[b"workspaceId"].decode()
    except (KeyError, UnicodeDecodeError):
        return True
    return index.hears(workspace_id, EXECUTED)
