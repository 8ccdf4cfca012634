"""The last writes of one field of a subject, oldest first. Pure.

At most 20 are kept. A write that says again what was so is the first to go, so that of a value which is told
over and over it stays known since when it has been so.
"""

from bisect import bisect_left
from collections.abc import Collection
from itertools import pairwise
from typing import Any, Final

import orjson

from shared.model.stamps import Stamp

KEPT: Final = 20

FieldWrite = tuple[Stamp, Any]

_PLAIN: Final = (str, int, type(None))


def insert_write(
    writes: tuple[FieldWrite, ...], new: FieldWrite, ends: Collection[Stamp]
) -> tuple[FieldWrite, ...]:
    """Lay a write among the others of its field; `ends` are the deletions of its subject."""
    stamps = [stamp for stamp, _ in writes]
    at = bisect_left(stamps, new[0])
    if at < len(writes) and stamps[at] == new[0]:
        return (*writes[:at], max(writes[at], new, key=_rank), *writes[at + 1 :])
    grown = (*writes[:at], new, *writes[at:])
    return grown if len(grown) <= KEPT else _without_one(grown, ends)


def _without_one(writes: tuple[FieldWrite, ...], ends: Collection[Stamp]) -> tuple[FieldWrite, ...]:
    """Drop the oldest write that changed nothing, else the oldest of all; the newest stays."""
    repeats = (
        at
        for at, (before, write) in enumerate(pairwise(writes[:-1]), start=1)
        if _is_repeat(before, write, ends)
    )
    at = next(repeats, 0)
    return (*writes[:at], *writes[at + 1 :])


def _is_repeat(before: FieldWrite, write: FieldWrite, ends: Collection[Stamp]) -> bool:
    """Tell whether a write says again what was so, in the same life."""
    return says_the_same(before, write) and not any(before[0] <= end < write[0] for end in ends)


def says_the_same(one: FieldWrite, other: FieldWrite) -> bool:
    """Tell whether two writes are of one value, written alike: 1 is not 1.0."""
    if type(one[1]) is not type(other[1]) or one[1] != other[1]:
        return False
    return isinstance(one[1], _PLAIN) or _rank(one) == _rank(other)


def _rank(write: FieldWrite) -> bytes:
    """Order two writes of one stamp, so that both orders of arrival end alike."""
    return orjson.dumps(write[1], option=orjson.OPT_SORT_KEYS)
