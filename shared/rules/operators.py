"""The operators of conditions: predicates over what was found and what is wanted, which never raise."""

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Final, Protocol

import re2

from shared.rules.changes import is_changed, value_after, value_before
from shared.rules.comparing import Reading, is_equal, order, order_moments
from shared.rules.values import Absence, Kind, fold, is_nothing, look_up, read_moment, read_stretch, read_text

MAX_PATTERN_CHARS: Final = 200
_PATTERN_MEMORY_BYTES: Final = 1 << 20
_PATTERNS_KEPT: Final = 512


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str) -> object:
        """Give a match anywhere in the text, or None."""
        ...


class Shape(Enum):
    """What the value of a leaf may be."""

    NOTHING = auto()
    ANY = auto()
    LIST = auto()
    PART = auto()
    TEXT = auto()
    BOUND = auto()
    BOUNDS = auto()
    MOMENT = auto()
    STRETCH = auto()
    PATTERN = auto()


@dataclass(frozen=True, slots=True)
class Question:
    """What a leaf asks of one event."""

    data: Mapping[str, object]
    field: tuple[str, ...]
    wanted: object
    reading: Reading

    @property
    def found(self) -> object:
        """What stands at the field's path; ABSENT if the path leads nowhere."""
        return look_up(self.data, self.field)


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: whether it holds, the shape of its value, and the kinds that its `as` may name."""

    holds: Callable[[Question], bool]
    shape: Shape
    kinds: frozenset[Kind]


class BadPattern(ValueError):
    """A pattern that RE2 does not take."""


@lru_cache(maxsize=_PATTERNS_KEPT)
def compile_pattern(pattern: str, reading: Reading) -> Pattern:
    """Compile an RE2 pattern, which matches in time linear in the text. Raises BadPattern."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY_BYTES
    options.case_sensitive = not reading.is_folded
    options.never_capture = True
    try:
        compiled: Pattern = re2.compile(pattern, options)
    except (re2.error, ValueError) as error:
        raise BadPattern(_said(error)) from error
    return compiled


def _said(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _eq(ask: Question) -> bool:
    return is_equal(ask.found, ask.wanted, ask.reading)


def _in(ask: Question) -> bool:
    if not isinstance(ask.wanted, list | tuple):
        return False
    found = ask.found
    members = found if isinstance(found, list | tuple) else (found,)
    return any(_is_member(member, ask.wanted, ask.reading) for member in members)


def _is_member(value: object, of: list[object] | tuple[object, ...], reading: Reading) -> bool:
    return not is_nothing(value) and any(is_equal(value, each, reading) for each in of)


def _contains(ask: Question) -> bool:
    found = ask.found
    if is_nothing(ask.wanted) or ask.wanted == "":
        return False
    if isinstance(found, list | tuple):
        return any(is_equal(member, ask.wanted, ask.reading) for member in found)
    return _is_text_related(ask, lambda text, part: part in text)


def _starts_with(ask: Question) -> bool:
    return _is_text_related(ask, str.startswith)


def _ends_with(ask: Question) -> bool:
    return _is_text_related(ask, str.endswith)


def _is_text_related(ask: Question, relation: Callable[[str, str], bool]) -> bool:
    found, part = ask.found, read_text(ask.wanted)
    if not isinstance(found, str) or not part:
        return False
    return relation(fold(found), fold(part)) if ask.reading.is_folded else relation(found, part)


def _orders(*accepted: int) -> Callable[[Question], bool]:
    return lambda ask: order(ask.found, ask.wanted, ask.reading) in accepted


def _between(ask: Question) -> bool:
    if not isinstance(ask.wanted, list | tuple) or len(ask.wanted) != 2:
        return False
    found, (low, high) = ask.found, ask.wanted
    return order(found, low, ask.reading) in {0, 1} and order(found, high, ask.reading) in {-1, 0}


def _is_empty(ask: Question) -> bool:
    found = ask.found
    return is_nothing(found) or (isinstance(found, Sized) and len(found) == 0)


def _changed(ask: Question) -> bool:
    return is_changed(ask.data, ask.field)


def _changed_to(ask: Question) -> bool:
    return _changed(ask) and is_equal(value_after(ask.data, ask.field), ask.wanted, ask.reading)


def _changed_from(ask: Question) -> bool:
    earlier = value_before(ask.data, ask.field)
    return _changed(ask) and earlier is not Absence.ABSENT and is_equal(earlier, ask.wanted, ask.reading)


def _before(ask: Question) -> bool:
    return order_moments(read_moment(ask.found), read_moment(ask.wanted)) == -1


def _after(ask: Question) -> bool:
    return order_moments(read_moment(ask.found), read_moment(ask.wanted)) == 1


def _within_last(ask: Question) -> bool:
    found, now, stretch = read_moment(ask.found), read_moment(ask.data.get("now")), read_stretch(ask.wanted)
    if found is None or now is None or stretch is None:
        return False
    return found.at <= now.at and now.at - found.at <= stretch


def _matches(ask: Question) -> bool:
    found = ask.found
    if not isinstance(found, str) or not isinstance(ask.wanted, str):
        return False
    try:
        return compile_pattern(ask.wanted, ask.reading).search(found) is not None
    except ValueError:
        return False


def _not(holds: Callable[[Question], bool]) -> Callable[[Question], bool]:
    return lambda ask: not holds(ask)


_ANY_KIND: Final = frozenset(Kind)
_SORTABLE: Final = frozenset({Kind.NUMBER, Kind.TEXT, Kind.DATE})
_TEXT: Final = frozenset({Kind.TEXT})
_DATE: Final = frozenset({Kind.DATE})
_NONE: Final[frozenset[Kind]] = frozenset()

OPERATORS: Final[Mapping[str, Operator]] = {
    "eq": Operator(_eq, Shape.ANY, _ANY_KIND),
    "ne": Operator(_not(_eq), Shape.ANY, _ANY_KIND),
    "in": Operator(_in, Shape.LIST, _ANY_KIND),
    "not_in": Operator(_not(_in), Shape.LIST, _ANY_KIND),
    "contains": Operator(_contains, Shape.PART, _ANY_KIND),
    "not_contains": Operator(_not(_contains), Shape.PART, _ANY_KIND),
    "starts_with": Operator(_starts_with, Shape.TEXT, _TEXT),
    "ends_with": Operator(_ends_with, Shape.TEXT, _TEXT),
    "gt": Operator(_orders(1), Shape.BOUND, _SORTABLE),
    "gte": Operator(_orders(0, 1), Shape.BOUND, _SORTABLE),
    "lt": Operator(_orders(-1), Shape.BOUND, _SORTABLE),
    "lte": Operator(_orders(-1, 0), Shape.BOUND, _SORTABLE),
    "between": Operator(_between, Shape.BOUNDS, _SORTABLE),
    "is_empty": Operator(_is_empty, Shape.NOTHING, _NONE),
    "is_not_empty": Operator(_not(_is_empty), Shape.NOTHING, _NONE),
    "changed": Operator(_changed, Shape.NOTHING, _NONE),
    "changed_to": Operator(_changed_to, Shape.ANY, _ANY_KIND),
    "changed_from": Operator(_changed_from, Shape.ANY, _ANY_KIND),
    "before": Operator(_before, Shape.MOMENT, _DATE),
    "after": Operator(_after, Shape.MOMENT, _DATE),
    "within_last": Operator(_within_last, Shape.STRETCH, _DATE),
    "matches": Operator(_matches, Shape.PATTERN, _TEXT),
}
