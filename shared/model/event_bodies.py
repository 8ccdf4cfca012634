"""A body of events, in bytes: one, a list, or a list under `events`; cut into objects within the limits.

Bytes that are no JSON of ours raise ValueError: no JSON at all, duplicate keys, numbers beyond 64 bits, too
many levels. What is JSON and no event raises BadEvent, which names its place. Pure.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from shared.errors import BadEvent
from shared.model.json_limits import load_json, read_object

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
    tree = load_json(body)
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
    tree = load_json(body)
    if not isinstance(tree, dict):
        raise BadEvent("data", "is not a JSON object")
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
    """Raise ValueError unless an object is within the limits of all bodies."""
    try:
        read_object(place, raw, spare=SPARE)
    except BadEvent as error:
        raise ValueError(f"{error.reason}, at {place}") from error
