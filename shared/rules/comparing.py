"""How a found and a wanted value compare, by one reading, so that it never matters which is the text."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TypeVar

from shared.rules.values import (
    Kind,
    Moment,
    fold,
    is_nothing,
    is_number,
    is_same_json,
    read_moment,
    read_number,
    read_text,
)

Sortable = TypeVar("Sortable", Decimal, str, date)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a leaf reads values: `kind` is its `as` (None: the JSON types decide), `is_folded` its `ci`."""

    kind: Kind | None = None
    is_folded: bool = False


def kind_of(found: object, wanted: object, reading: Reading) -> Kind | None:
    """Tell how two values are compared; None: only as whole JSON values.

    Without `as` the wanted value's JSON type decides; a number on either side makes it a comparison of
    numbers.
    """
    if reading.kind is not None:
        return reading.kind
    if is_number(wanted) or (is_number(found) and isinstance(wanted, str)):
        return Kind.NUMBER
    if isinstance(wanted, bool):
        return Kind.BOOLEAN
    return Kind.TEXT if isinstance(wanted, str) else None


def is_equal(found: object, wanted: object, reading: Reading) -> bool:
    """Tell whether two values are equal; null equals null and what is absent, and nothing else does."""
    if is_nothing(found) or is_nothing(wanted):
        return is_nothing(found) and is_nothing(wanted)
    kind = kind_of(found, wanted, reading)
    if kind is None:
        return is_same_json(found, wanted)
    if kind is Kind.BOOLEAN:
        return isinstance(found, bool) and found is wanted
    return order(found, wanted, reading) == 0


def order(found: object, wanted: object, reading: Reading) -> int | None:
    """Give -1, 0 or 1 as `found` is below, equal to or above `wanted`; None if the two have no order."""
    match kind_of(found, wanted, reading):
        case Kind.NUMBER:
            return _sign(read_number(found), read_number(wanted))
        case Kind.TEXT:
            return _sign(_read_text(found, reading), _read_text(wanted, reading))
        case Kind.DATE:
            return order_moments(read_moment(found), read_moment(wanted))
    return None


def order_moments(one: Moment | None, other: Moment | None) -> int | None:
    """Order two moments; where either is a whole day, both are taken as days in UTC."""
    if one is None or other is None:
        return None
    if one.is_day or other.is_day:
        return _sign(one.at.date(), other.at.date())
    return _sign(one.at, other.at)


def _read_text(value: object, reading: Reading) -> str | None:
    text = read_text(value) if reading.kind is Kind.TEXT else value
    if not isinstance(text, str):
        return None
    return fold(text) if reading.is_folded else text


def _sign(one: Sortable | None, other: Sortable | None) -> int | None:
    if one is None or other is None:
        return None
    return (one > other) - (one < other)
