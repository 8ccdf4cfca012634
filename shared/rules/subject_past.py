"""How a subject came to be as it is: its states back to its birth, as far as they are known. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from shared.model.field_writes import KEPT, FieldWrite, says_the_same
from shared.model.stamps import Stamp
from shared.model.subjects import SubjectRow, data
from shared.rules.values import Absence

_Step = tuple[Stamp, str, object]  # at this stamp, this field got its value; before it had that one


@dataclass(frozen=True, slots=True)
class Past:
    """The states of a subject's present life, newest first, each with the stamp at which it began.

    `is_whole`: the last one is that at its birth, and nothing of what came after has been forgotten.
    """

    states: Iterator[tuple[Stamp, Mapping[str, Any]]]
    is_whole: bool


def past_of(subject: SubjectRow, names: Collection[str]) -> Past:
    """Go back through the writes of these fields; all other fields stay as they are now."""
    since = subject.born_after or (-1, -1)
    lived = {name: _after(subject.fields.get(name, ()), since) for name in names}
    life = [touch.stamp for touch in subject.touches if touch.stamp > since]
    steps = sorted(
        (step for name, writes in lived.items() for step in _steps(name, writes)),
        key=lambda step: step[0],
        reverse=True,
    )
    full = [writes[0][0] for writes in lived.values() if len(writes) >= KEPT]
    if full:
        known = [step for step in steps if step[0] >= max(full)]
        return Past(_states(data(subject), known, None), is_whole=False)
    is_whole = len(life) < KEPT
    oldest = steps[-1][0] if steps else life[0]
    if is_whole and steps and oldest <= life[0]:
        return Past(_states(data(subject), steps, None), is_whole=True)
    return Past(_states(data(subject), steps, min(oldest, life[0])), is_whole)


def _after(writes: tuple[FieldWrite, ...], since: Stamp) -> tuple[FieldWrite, ...]:
    return tuple(write for write in writes if write[0] > since)


def _steps(name: str, writes: tuple[FieldWrite, ...]) -> Iterator[_Step]:
    """Give the writes that changed something."""
    if writes:
        yield writes[0][0], name, Absence.ABSENT
    for before, write in pairwise(writes):
        if not says_the_same(before, write):
            yield write[0], name, before[1]


def _states(
    state: Mapping[str, Any], steps: list[_Step], born: Stamp | None
) -> Iterator[tuple[Stamp, Mapping[str, Any]]]:
    """Undo the writes one stamp after the other; `born` is when it was there without any of them."""
    for stamp, undone in groupby(steps, key=lambda step: step[0]):
        yield stamp, state
        earlier = {**state, **{name: before for _, name, before in undone}}
        state = {name: value for name, value in earlier.items() if value is not Absence.ABSENT}
    if born is not None:
        yield born, state
