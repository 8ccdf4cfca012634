"""What a set of deliveries holds: events, entries that are none, and entries that are gone. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from matcher.stream import Arrival, Delivery
from shared.dead_stream import Burial
from shared.errors import BadEvent
from shared.model.events import Event, decode_entry


@dataclass(slots=True)
class Decoded:
    """The deliveries, sorted out; `fresh` are the ids of the events that were never handed out before."""

    events: list[Event] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)
    burials: list[Burial] = field(default_factory=list)
    trimmed: list[str] = field(default_factory=list)


def decode(deliveries: Iterable[Delivery]) -> Decoded:
    """Sort deliveries out, in their order."""
    decoded = Decoded()
    for delivery in deliveries:
        if delivery.fields is None:
            decoded.trimmed.append(delivery.entry_id)
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
