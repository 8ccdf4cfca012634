"""The Redis mark that an event was matched to an automation: a short cut, never the judge.

The mark holds the entry's id, so that a reply which was lost does not make an entry a duplicate of itself.
The unique index on runs decides in every case.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.keys import DEDUPE_TTL_S, Keys
from shared.redis_port import RedisPort


@dataclass(frozen=True, slots=True)
class Mark:
    """What is marked, and by which entry."""

    automation_id: str
    event_key: str
    entry_id: str


def find_taken(client: RedisPort, keys: Keys, marks: Sequence[Mark]) -> frozenset[Mark]:
    """Set the marks for ten minutes and give those that another entry had set before."""
    if not marks:
        return frozenset()
    names = [keys.dedupe(mark.automation_id, mark.event_key) for mark in marks]
    with client.pipeline(transaction=False) as pipe:
        for name, mark in zip(names, marks, strict=True):
            pipe.set(name, mark.entry_id, nx=True, ex=DEDUPE_TTL_S)
        were_set = pipe.execute()
    lost = [at for at, was_set in enumerate(were_set) if not was_set]
    if not lost:
        return frozenset()
    holders = client.mget([names[at] for at in lost])
    return frozenset(
        marks[at]
        for at, holder in zip(lost, holders, strict=True)
        if holder is not None and holder != marks[at].entry_id.encode()
    )
