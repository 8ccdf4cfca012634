"""A body of events, in bytes: one, a list, or a list under `events`; cut into objects within the limits.

Bytes that are no JSON raise ValueError. An object beyond the limits of an event raises BadEvent, which names
its place. Pure.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import orjson

from shared.errors import BadEvent
from shared.model.json_limits import read_object

EVENTS: Final = "events"
MOST: Final = 500
SPARE: Final = 20  # what stands around a payload

_MARK: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Item:
    """One object of a body, and its place in it; a body that is one object has no place."""

    place: str
    value: dict[str, Any]

    def at(self, field: str) -> str:
        """Name one of its fields."""
        return f"{self.place}.{field}" if self.place else field


def read_items(body: bytes) -> list[Item]:
    """Cut a body into its objects. Raises ValueError, BadEvent."""
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from error
    match tree:
        case {"events": list() as listed} if len(tree) == 1:
            return _cut(body, listed, 2)
        case dict():
            _check("event", body)
            return [Item("", tree)]
        case list():
            return _cut(body, tree, 1)
        case _:
            raise BadEvent(EVENTS, "must be an event, or a list of events")


def read_data(body: bytes) -> dict[str, Any]:
    """Read the data of one event, whose other parts came elsewhere. Raises ValueError, BadEvent."""
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from error
    _check("data", body)
    return dict(tree)


def _cut(body: bytes, listed: list[Any], depth: int) -> list[Item]:
    """Make the items of a list whose objects lie so deep in the body."""
    if not 1 <= len(listed) <= MOST:
        raise BadEvent(EVENTS, f"must hold 1 to {MOST} events")
    for number, value in enumerate(listed):
        if not isinstance(value, dict):
            raise BadEvent(f"{EVENTS}[{number}]", "must be an object")
    raw = _objects(body, depth)
    if len(raw) != len(listed):
        raise BadEvent(EVENTS, "is there more than once")
    items = [Item(f"{EVENTS}[{number}]", value) for number, value in enumerate(listed)]
    for item, each in zip(items, raw, strict=True):
        _check(item.place, each)
    return items


def _objects(body: bytes, depth: int) -> list[bytes]:
    """Give the bytes of each object that begins at this depth; the body is JSON."""
    found: list[bytes] = []
    level, begun = 0, 0
    for mark in _MARK.finditer(body):
        match mark[0]:
            case b"{" | b"[":
                begun = mark.start() if level == depth else begun
                level += 1
            case b"}" | b"]":
                level -= 1
                if level == depth:
                    found.append(body[begun : mark.end()])
    return found


def _check(place: str, raw: bytes) -> None:
    read_object(place, raw, spare=SPARE)
