"""What must not be recorded: given values, in every spelling in which they may have been echoed. Pure.

The spellings are the value itself and its lines; JSON-escaped up to three times, since a JSON text that holds
another one as a string escapes it again; URL-encoded, HTML-escaped and in base64 (alone or within a longer
text), each also of the JSON-escaped form. A text that ends with the first part of one was cut there.
"""

import base64
import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlsplit

from shared.masking import MASK

SHORTEST: Final = 4
MAX_DEPTH: Final = 100
_TELLING_PART: Final = 8
_SHOWN_PATH: Final = 200
_MARKUP_IN_JSON: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


class Hider:
    """Replaces values of at least 4 characters by `***`; shorter ones would mask half of any text."""

    def __init__(self, values: Iterable[str]) -> None:
        """Find out how the values may be spelled."""
        spellings = {each for value in values for each in _spellings(value) if len(each) >= SHORTEST}
        self._spellings = tuple(sorted(spellings, key=lambda each: (-len(each), each)))

    def hides(self) -> bool:
        """Tell whether there is anything to hide."""
        return bool(self._spellings)

    def text(self, text: str) -> str:
        """Give a text as it may be recorded."""
        for spelling in self._spellings:
            text = text.replace(spelling, MASK)
        cut = max((_overlap(text, spelling) for spelling in self._spellings), default=0)
        return text[:-cut] + MASK if cut else text

    def tree(self, tree: Any, levels: int = MAX_DEPTH) -> Any:
        """Give a JSON tree as it may be recorded, its keys too; nothing of what lies too deep."""
        if not self._spellings:
            return tree
        if not levels:
            return MASK
        match tree:
            case str():
                shown = self.text(tree)
                return tree if shown == tree else shown  # which keeps the member of an enumeration
            case Mapping():
                return {
                    self.text(key) if isinstance(key, str) else key: self.tree(each, levels - 1)
                    for key, each in tree.items()
                }
            case list():
                return [self.tree(each, levels - 1) for each in tree]
            case tuple():
                return tuple(self.tree(each, levels - 1) for each in tree)
        return tree


def _overlap(text: str, spelling: str) -> int:
    """Tell how many characters of a spelling's beginning a text ends with; 0 if too few to tell anything."""
    head = spelling[: max(SHORTEST, min(_TELLING_PART, len(spelling) // 2))]
    at = text.find(head, max(0, len(text) - len(spelling) + 1))
    while at >= 0:
        if spelling.startswith(text[at:]):
            return len(text) - at
        at = text.find(head, at + 1)
    return 0


def _plain_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _ascii_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _slashed_json(text: str) -> str:
    """Escape as PHP does."""
    return _ascii_json(text).replace("/", "\\/")


def _markup_safe_json(text: str) -> str:
    """Escape as Go does."""
    return _plain_json(text).translate(_MARKUP_IN_JSON)


_JSON_ESCAPES: Final[tuple[Callable[[str], str], ...]] = (
    _plain_json,
    _ascii_json,
    _slashed_json,
    _markup_safe_json,
)


def _spellings(value: str) -> Iterator[str]:
    lines = [line.strip() for line in value.splitlines()]
    for part in {
        value,
        value.strip(),
        *(line for line in lines if len(line) >= _TELLING_PART),
        *_url_parts(value),
    }:
        if len(part) >= SHORTEST:
            yield from _spellings_of_part(part)


def _spellings_of_part(part: str) -> Iterator[str]:
    yield from (repr(part)[1:-1], part.replace("/", "\\/"))
    once = {part, *(escape(part) for escape in _JSON_ESCAPES)}
    for text in once:
        yield text
        yield from _escaped_again(text)
        yield from _in_url(text)
        yield from _in_base64(text.encode("utf-8", "replace"))
        for marked in _in_html(text):
            yield from (marked, *(escape(marked) for escape in _JSON_ESCAPES))


def _escaped_again(text: str) -> Iterator[str]:
    """Give a text as it stands in a JSON string, and in one that stands in another one."""
    for escape in _JSON_ESCAPES:
        outer = escape(text)
        yield from (outer, escape(outer))


def _in_url(text: str) -> Iterator[str]:
    encoded = (quote(text, safe=""), quote(text), quote_plus(text))
    yield from encoded
    yield from (quote(each, safe="") for each in encoded)


def _in_html(text: str) -> Iterator[str]:
    yield from (html.escape(text, quote=False), html.escape(text))
    yield html.escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    yield html.escape(text).replace("&#x27;", "&#39;")


def _url_parts(value: str) -> Iterator[str]:
    """Give what is secret in a secret URL: its path is shown in messages, without the rest of it."""
    if "://" not in value:
        return
    try:
        parts = urlsplit(value.strip())
    except ValueError:
        return
    yield from (parts.path.strip("/"), parts.path[:_SHOWN_PATH].strip("/"), parts.query)


def _in_base64(raw: bytes) -> Iterator[str]:
    """Give the base64 forms of a value, and the part that they share wherever it stands in a longer text."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw).decode("ascii").rstrip("=")
        for before in range(3):
            coded = encode(bytes(before) + raw).decode("ascii").rstrip("=")
            settled = coded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
            if len(settled) >= _TELLING_PART:
                yield settled
