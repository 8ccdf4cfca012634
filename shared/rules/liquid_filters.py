"""The filters that templates may use: a chosen few, each bounded in what it makes and charged to the render.

A chain of filters may multiply a text without end (`replace`, `join`, `base64_encode`), so sizes are checked
after each step, and before it where one step alone could multiply. None of them reads a clock, a file or an
attribute.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence, Sized
from functools import partial
from typing import Final

from liquid import Environment, Undefined
from liquid.builtin.filters import array, misc, string
from liquid.builtin.filters import math as arithmetic
from liquid.exceptions import FilterArgumentError, ResourceLimitError

from shared.rules.liquid_context import MAX_OUTPUT_BYTES, Absent, SandboxContext
from shared.rules.plain_text import JsonText, as_json, as_text
from shared.rules.values import read_moment

MAX_ITEMS: Final = 20_000
MAX_NUMBER_BITS: Final = 2_048
MAX_FORMAT_CHARS: Final = 100
_UNITS_A_CALL: Final = 10
_SIZE_A_UNIT: Final = 25
_WEIGHT_OF_AN_ITEM: Final = 8
_PADDED_DIRECTIVE: Final = re.compile(r"%[^a-zA-Z%]*[0-9]")

Filter = Callable[..., object]


class _Bounded:
    """One filter as templates call it: arguments made plain, work charged, the result bounded."""

    with_context = True

    def __init__(self, call: Filter) -> None:
        """Wrap a filter that takes plain JSON values."""
        self._call = call

    def __call__(self, left: object, *args: object, context: SandboxContext, **named: object) -> object:
        """Apply the filter once."""
        for value in (left, *args):
            if isinstance(value, Absent):
                value.note()
        return self._bound(context, self._call(*map(self._plain, (left, *args)), **named), left)

    def _plain(self, value: object) -> object:
        return None if isinstance(value, Undefined) else value

    def _bound(self, context: SandboxContext, result: object, left: object) -> object:
        context.spend(_UNITS_A_CALL + (_weight(left) + _weight(result)) // _SIZE_A_UNIT)
        limit = MAX_OUTPUT_BYTES if isinstance(result, str) else MAX_ITEMS
        if _size(result) > limit or (isinstance(result, int) and result.bit_length() > MAX_NUMBER_BITS):
            raise ResourceLimitError("a filter makes too much", token=None)
        if isinstance(result, float) and not math.isfinite(result):
            raise FilterArgumentError("the result is no number", token=None)
        return result


class _BoundedText(_Bounded):
    """A filter on text: whatever it is given besides numbers is text first."""

    def _plain(self, value: object) -> object:
        value = super()._plain(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if is_number else as_text(value)


class _Default(_Bounded):
    """`default`, which is there for absent names and so does not report them."""

    def __call__(self, left: object, *args: object, context: SandboxContext, **named: object) -> object:
        """Apply the filter once."""
        return super().__call__(self._plain(left), *args, context=context, **named)


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | Sequence | Mapping) and isinstance(value, Sized) else 0


def _weight(value: object) -> int:
    return _size(value) if isinstance(value, str) else _size(value) * _WEIGHT_OF_AN_ITEM


def _refuse_above(size: int) -> None:
    if size > MAX_OUTPUT_BYTES:
        raise ResourceLimitError("a filter makes too much", token=None)


def _replace(text: object, part: object, by: object = "") -> str:
    whole, old, new = as_text(text), as_text(part), as_text(by)
    _refuse_above(len(whole) + whole.count(old) * max(0, len(new) - len(old)))
    return whole.replace(old, new)


def _join(items: object, separator: object = " ") -> str:
    if not isinstance(items, list | tuple):
        return as_text(items)
    texts, between = [as_text(item) for item in items], as_text(separator)
    _refuse_above(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _date(value: object, layout: object = "%Y-%m-%d") -> str:
    moment = read_moment(value)
    if moment is None:
        return as_text(value)
    text = as_text(layout)
    if len(text) > MAX_FORMAT_CHARS or _PADDED_DIRECTIVE.search(text):
        raise FilterArgumentError("the date format is too long or has a width", token=None)
    return moment.at.strftime(text)


def _json(value: object) -> JsonText:
    return JsonText(as_json(value))


def _map(items: object, key: object) -> object:
    name = as_text(key)
    rows = items if isinstance(items, list | tuple) else ()
    return [row.get(name) if isinstance(row, Mapping) else None for row in rows]


def _sort(items: object) -> object:
    rows = list(items) if isinstance(items, list | tuple) else []
    return sorted(rows, key=lambda row: (isinstance(row, str), row))


def _reverse(items: object) -> object:
    return list(reversed(items)) if isinstance(items, list | tuple) else items


def _compact(items: object) -> object:
    return [item for item in items if item is not None] if isinstance(items, list | tuple) else items


def _size_of(value: object) -> int:
    return _size(value)


TEXT_FILTERS: Final[Mapping[str, Filter]] = {
    "append": string.append,
    "base64_encode": string.base64_encode,
    "capitalize": string.capitalize,
    "downcase": string.downcase,
    "lstrip": string.lstrip,
    "prepend": string.prepend,
    "remove": string.remove,
    "replace": _replace,
    "rstrip": string.rstrip,
    "split": string.split,
    "squish": string.squish,
    "strip": string.strip,
    "truncate": string.truncate,
    "truncatewords": string.truncatewords,
    "upcase": string.upcase,
    "url_decode": string.url_decode,
}
ENVIRONMENT_TEXT_FILTERS: Final[Mapping[str, Filter]] = {
    "escape": string.escape,
    "newline_to_br": string.newline_to_br,
    "strip_newlines": string.strip_newlines,
    "url_encode": string.url_encode,
}
VALUE_FILTERS: Final[Mapping[str, Filter]] = {
    "abs": arithmetic.abs_,
    "at_least": arithmetic.at_least,
    "at_most": arithmetic.at_most,
    "ceil": arithmetic.ceil,
    "compact": _compact,
    "date": _date,
    "divided_by": arithmetic.divided_by,
    "floor": arithmetic.floor,
    "join": _join,
    "json": _json,
    "map": _map,
    "minus": arithmetic.minus,
    "modulo": arithmetic.modulo,
    "plus": arithmetic.plus,
    "reverse": _reverse,
    "round": arithmetic.round_,
    "size": _size_of,
    "slice": string.slice_,
    "sort": _sort,
    "times": arithmetic.times,
}
ENVIRONMENT_VALUE_FILTERS: Final[Mapping[str, Filter]] = {"first": array.first, "last": array.last}


def add_filters(environment: Environment) -> None:
    """Make these filters, and no others, the ones that an environment knows."""
    environment.filters.clear()
    environment.filters["default"] = _Default(misc.default)
    for name, call in TEXT_FILTERS.items():
        environment.filters[name] = _BoundedText(call)
    for name, call in ENVIRONMENT_TEXT_FILTERS.items():
        environment.filters[name] = _BoundedText(partial(call, environment=environment))
    for name, call in VALUE_FILTERS.items():
        environment.filters[name] = _Bounded(call)
    for name, call in ENVIRONMENT_VALUE_FILTERS.items():
        environment.filters[name] = _Bounded(partial(call, environment=environment))
