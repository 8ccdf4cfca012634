"""Text in which a template may stand: where its templates are, and what the rest of it must look like."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from pydantic import JsonValue

URL_MAX: Final = 2048
_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_STAND_IN: Final = "1"
_UNPRINTABLE: Final = re.compile(r"[\x00-\x20\x7f\\]")
_SCHEMES: Final = ("http", "https")


def check_url(text: str) -> None:
    """Raise ValueError unless `text` may become an http(s) URL with one host; templates may fill any part.

    A URL that begins with a template is looked at once it is rendered.
    """
    _check_length(text)
    plain = _TEMPLATE.sub(_STAND_IN, text)
    _check_characters(plain)
    if not _TEMPLATE.match(text):
        _check_parts(plain)


def rendered_url(text: str) -> str:
    """Give a URL whose templates are filled, with the blanks of its query encoded.

    Raises ValueError unless it is an http(s) URL with one host; what looks like a template is a customer's
    text now. Whether the host may be called is decided when it is called, and again at every attempt.
    """
    path, mark, query = text.partition("?")
    url = path + mark + query.replace(" ", "%20")
    _check_length(url)
    _check_characters(url)
    _check_parts(url)
    return url


def _check_length(url: str) -> None:
    if len(url) > URL_MAX:
        raise ValueError(f"a URL has at most {URL_MAX} characters")


def _check_characters(url: str) -> None:
    if _UNPRINTABLE.search(url):
        raise ValueError("a URL holds no blanks, control characters or backslashes")


def _check_parts(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"not a URL: {error}") from error
    if parts.scheme not in _SCHEMES:
        raise ValueError("a URL begins with http:// or https://")
    if not host:
        raise ValueError("the URL has no host")
    if parts.netloc.count("@") > 1:
        raise ValueError("the URL has more than one @ before its path")


def walk_texts(tree: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Give every text value in a JSON tree with its path (`body.items[0].name`); keys are not values."""
    if isinstance(tree, str):
        yield path, tree
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from walk_texts(value, f"{path}.{key}" if path else key)
    elif isinstance(tree, Sequence):
        for index, value in enumerate(tree):
            yield from walk_texts(value, f"{path}[{index}]")
