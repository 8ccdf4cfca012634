"""JSON at the door: bytes become a bounded tree, or one refusal that says why.

What is refused: bytes that are not UTF-8, NaN and Infinity, integers beyond 64 bits signed, duplicate keys,
more than 32 levels, more than 10,000 values. What is mended: NUL and lone surrogates, which no database of
ours can hold, become U+FFFD. The verdict depends on the bytes alone, never on the database.

Most documents take the fast parser and one walk; only what the walk cannot vouch for is read again slowly.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Never

import orjson

from shared.errors import BadEvent

MAX_DEPTH: Final = 32
MAX_NODES: Final = 10_000
MAX_INT: Final = 2**63 - 1
MIN_INT: Final = -(2**63)
REPLACEMENT: Final = "\ufffd"
HAS_MARK: Final = "begins with a byte order mark; send UTF-8 without one"

_TELLING_ESCAPES: Final = (b"\\u0000", b"\\u003a", b"\\u003A")  # a NUL to mend; colons that cannot be counted
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_MARK_OF_ORDER: Final = b"\xef\xbb\xbf"
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKET: Final = re.compile(r"[\[\]{}]")


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object that was read; `sanitized` says that some text in it had to be mended."""

    value: dict[str, Any]
    sanitized: bool


def load_json(raw: bytes) -> Any:
    """Read JSON fast, with lone surrogates mended; its limits are for others to check. Raises ValueError."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if raw.startswith(_MARK_OF_ORDER):
            raise ValueError(HAS_MARK) from error
        mended = mend_surrogates(raw)
        if mended == raw:
            raise ValueError(f"is not JSON: {error}") from error
    try:
        return orjson.loads(mended)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from error


def mend_surrogates(raw: bytes) -> bytes:
    """Write the escape of U+FFFD for each escape in JSON that is one half of a pair."""
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found["lone"] else found[0], raw)


def read_object(field: str, raw: bytes, *, spare: int = 0) -> JsonObject:
    """Read one JSON object within the limits. Raises BadEvent naming `field`, and nothing else.

    An object that holds a payload among other things may have `spare` more levels and values.
    """
    try:
        tree = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _read_slowly(field, raw, spare)
    if type(tree) is not dict:
        raise BadEvent(field, "is not a JSON object")
    if any(escape in raw for escape in _TELLING_ESCAPES) or not _is_plain(tree, raw.count(b":")):
        return _read_slowly(field, raw, spare)
    return JsonObject(tree, sanitized=False)


def clean_text(text: str) -> str:
    """Replace what no database of ours can hold (NUL, lone surrogates) by U+FFFD."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def clean_tree(tree: Any) -> Any:
    """Clean every text and key of a JSON tree. Recurses, so the caller bounds the depth."""
    match tree:
        case str():
            return clean_text(tree)
        case Mapping():
            return {clean_text(key): clean_tree(value) for key, value in tree.items()}
        case list() | tuple():
            return [clean_tree(value) for value in tree]
        case _:
            return tree


def _is_plain(tree: dict[str, Any], colons: int) -> bool:
    """Vouch for a parsed tree: its bounds hold and its keys are as many as were written.

    `colons` counts the colons of the document. Each belongs to a text or follows a key, so a surplus means
    that a duplicate key was dropped. Escaped colons would spoil the sum; the caller has excluded them.
    """
    level: list[Any] = [tree]
    nodes = 1
    for _ in range(MAX_DEPTH):
        values: list[Any] = []
        for container in level:
            if type(container) is dict:
                colons -= len(container) + "".join(container).count(":")
                values += container.values()
            else:
                values += container
        nodes += len(values)
        level = []
        for value in values:
            kind = type(value)
            if kind is str:
                colons -= value.count(":")
            elif kind is dict or kind is list:
                level.append(value)
            elif (kind is int or kind is float) and not MIN_INT < value < MAX_INT:
                return False
        if not level or nodes > MAX_NODES:
            return colons == 0 and nodes <= MAX_NODES
    return False


def _read_slowly(field: str, raw: bytes, spare: int) -> JsonObject:
    if raw.startswith(_MARK_OF_ORDER):
        raise BadEvent(field, HAS_MARK)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise BadEvent(field, "is not UTF-8") from error
    if _is_deep(text, MAX_DEPTH + spare):
        raise BadEvent(field, f"is nested more than {MAX_DEPTH + spare} levels deep")
    try:
        tree = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_bounded_int,
            parse_float=_finite_float,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        raise BadEvent(field, f"is not JSON: {error}") from error
    except ValueError as error:
        raise BadEvent(field, str(error)) from error
    if type(tree) is not dict:
        raise BadEvent(field, "is not a JSON object")
    if _count_nodes(tree) > MAX_NODES + spare:
        raise BadEvent(field, f"holds more than {MAX_NODES + spare} values")
    cleaned = clean_tree(tree)
    return JsonObject(cleaned, sanitized=cleaned != tree)


def _is_deep(text: str, most: int) -> bool:
    """Measure the nesting on the text itself, before any recursive parser sees it."""
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > most:
            return True
    return False


def _count_nodes(tree: Any) -> int:
    match tree:
        case dict():
            return 1 + sum(map(_count_nodes, tree.values()))
        case list():
            return 1 + sum(map(_count_nodes, tree))
        case _:
            return 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"has a duplicate key: {next(n for n in names if names.count(n) > 1)[:100]!r}")
    return found


def _bounded_int(digits: str) -> int:
    if len(digits) > 20 or not MIN_INT <= (value := int(digits)) <= MAX_INT:
        raise ValueError("holds an integer beyond 64 bits")
    return value


def _finite_float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError("holds a number that is too large")
    return value


def _no_constant(name: str) -> Never:
    raise ValueError(f"holds {name}, which is not JSON")
