"""Whether a definition is plain JSON that every store of ours can hold, before any schema looks at it."""

import math
from collections.abc import Iterator, Mapping
from typing import Final

import orjson

from shared.errors import Fault
from shared.model.json_limits import MAX_DEPTH, MAX_INT, MAX_NODES, MIN_INT, clean_text
from shared.model.refusals import join

MAX_DEFINITION_BYTES: Final = 256 * 1024
_FAULTS_SHOWN: Final = 20


def tree_faults(tree: object) -> list[Fault]:
    """Find what makes a tree no bounded JSON: strange types, depth, count, numbers, texts, size in bytes.

    Bounded in time by the count of values, also for a tree that contains itself.
    """
    faults: list[Fault] = []
    waiting: list[tuple[str, object, int]] = [("", tree, 1)]
    seen = 0
    while waiting and len(faults) < _FAULTS_SHOWN:
        path, value, depth = waiting.pop()
        seen += 1
        if seen > MAX_NODES:
            return [Fault("", f"holds more than {MAX_NODES} values; what an alias repeats counts each time")]
        faults.extend(_own_faults(path, value, depth))
        if depth <= MAX_DEPTH:
            waiting.extend((child_path, child, depth + 1) for child_path, child in _children(path, value))
    return faults or _size_faults(tree)


def _own_faults(path: str, value: object, depth: int) -> Iterator[Fault]:
    match value:
        case None | bool():
            return
        case str():
            if clean_text(value) != value:
                yield Fault(path, "holds a NUL character or half of a surrogate pair")
        case int():
            if not MIN_INT <= value <= MAX_INT:
                yield Fault(path, "is an integer beyond 64 bits")
        case float():
            if not math.isfinite(value):
                yield Fault(path, "is not a finite number")
        case Mapping() | list():
            if depth > MAX_DEPTH:
                yield Fault(path, f"is nested more than {MAX_DEPTH} levels deep")
            yield from (
                Fault(path, f"has the key {_shown_key(key)}, which is no clean text; write it in quotes")
                for key in _bad_keys(value)
            )
        case _:
            yield Fault(path, f"is a {type(value).__name__}, which JSON does not have")


def _bad_keys(value: Mapping[object, object] | list[object]) -> list[object]:
    if isinstance(value, list):
        return []
    return [key for key in value if not isinstance(key, str) or clean_text(key) != key]


def _shown_key(key: object) -> str:
    if isinstance(key, str):
        return repr(key[:40])
    return "null" if key is None else str(key)[:40].lower()


def _children(path: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        yield from ((join(path, str(key)), child) for key, child in value.items())
    elif isinstance(value, list):
        yield from ((f"{path}[{index}]", child) for index, child in enumerate(value))


def _size_faults(tree: object) -> list[Fault]:
    size = len(orjson.dumps(tree))
    if size <= MAX_DEFINITION_BYTES:
        return []
    return [Fault("", f"takes {size} bytes as JSON, at most {MAX_DEFINITION_BYTES} are allowed")]
