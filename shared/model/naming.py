"""Which delayed automations the events of a subject named, kept beside what they wrote. Pure.

An event may come to be known late, and show that a stretch began which an event known long before has named.
So a subject remembers with each of its last events whom it named; of one automation only the newest counts.
"""

from collections.abc import Collection
from dataclasses import replace

from shared.model.stamps import Stamp
from shared.model.subjects import SubjectRow, Touch


def note_named(row: SubjectRow, event_key: str, automation_ids: Collection[str]) -> SubjectRow:
    """Remember whom an event named; the very same row comes back if there is nothing to remember."""
    told = next((touch for touch in row.touches if touch.event_key == event_key), None)
    if told is None or not automation_ids:
        return row
    newer = {name for touch in row.touches if touch.stamp > told.stamp for name in touch.names}
    named = frozenset(automation_ids) - newer
    touches = tuple(_noted(touch, touch is told, named) for touch in row.touches)
    return row if touches == row.touches else replace(row, touches=touches)


def was_named(row: SubjectRow, automation_id: str, since: Stamp) -> bool:
    """Tell whether an event named the automation at `since` or later, as far as the row remembers."""
    return any(touch.stamp >= since and automation_id in touch.names for touch in row.touches)


def _noted(touch: Touch, is_told: object, named: frozenset[str]) -> Touch:
    names = frozenset(touch.names) | named if is_told else frozenset(touch.names) - named
    return replace(touch, names=tuple(sorted(names)))
