"""What is shown of large documents: rows keep a cut copy, while conditions and templates see the whole."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from shared.model.json_limits import clean_text, clean_tree

INPUT_SHOWN_BYTES: Final = 65_536
OUTPUT_SHOWN_BYTES: Final = 131_072

_SHORTEST: Final = 32
_WRAPPING: Final = 64
_NUL: Final = b"\\u0000"


def cut_for_show(document: Mapping[str, Any], limit_bytes: int = INPUT_SHOWN_BYTES) -> dict[str, Any]:
    """Give the document itself if it fits, else a copy of at most `limit_bytes` with `truncated: true`.

    The copy keeps its shape and shortens the longest texts, on a code point border. Where short texts alone
    are too many, the copy is `{"truncated": true, "preview": the first part of the JSON text}`. Sizes are
    those of compact UTF-8 JSON. What no database can hold is replaced, and marked with `sanitized: true`;
    what is not JSON at all is shown as text. Never raises.
    """
    shown, text = _storable(document)
    if len(text) <= limit_bytes:
        return shown
    longest = limit_bytes
    while longest >= _SHORTEST:
        copy = {**_shortened(shown, longest), "truncated": True}
        if len(orjson.dumps(copy)) <= limit_bytes:
            return copy
        longest //= 2
    kept = max(0, limit_bytes - _WRAPPING) // 2  # quoting a JSON text at most doubles it
    mark = {"sanitized": True} if shown.get("sanitized") is True else {}
    return {"truncated": True, "preview": text[:kept].decode(errors="ignore"), **mark}


def split_for_show(document: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """Give what is shown of a document, and the document itself if that is less than the whole."""
    shown = cut_for_show(document)
    return shown, document if shown.get("truncated") is True else None


def cut_text(text: str, limit_bytes: int) -> str:
    """Give the longest beginning of `text` with at most `limit_bytes` in UTF-8, on a code point border."""
    raw = text.encode(errors="replace")
    return text if len(raw) <= limit_bytes else raw[:limit_bytes].decode(errors="ignore")


def _storable(document: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    shown = dict(document)
    try:
        text = orjson.dumps(shown)
        return (shown, text) if _NUL not in text else _cleaned(shown)
    except TypeError:
        return _cleaned(shown)


def _cleaned(document: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    try:
        cleaned = clean_tree(document)
        shown = cleaned if cleaned == document else {**cleaned, "sanitized": True}
        return shown, orjson.dumps(shown)
    except (TypeError, RecursionError):
        shown = {"preview": clean_text(_spelled(document)), "sanitized": True}
        return shown, orjson.dumps(shown)


def _spelled(document: object) -> str:
    try:
        return repr(document)
    except RecursionError:
        return "nested too deep"


def _shortened(tree: Any, longest: int) -> Any:
    match tree:
        case str():
            return cut_text(tree, longest)
        case Mapping():
            return {key: _shortened(value, longest) for key, value in tree.items()}
        case list() | tuple():
            return [_shortened(value, longest) for value in tree]
        case _:
            return tree
