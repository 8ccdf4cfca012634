"""What the text of a URL already tells about the host: whether a webhook may reach it. Pure.

A name is judged when it is looked up, at every attempt (docs/security.md). Judged here are addresses, in any
spelling that some reader of URLs takes for one, and the names that mean this machine everywhere.
"""

import re
import unicodedata
from typing import Final
from urllib.parse import unquote

from shared.rules.addresses import literal_address, refusal

_AUTHORITY: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.\-]*:[/\\]{2}((?:\{\{.*?\}\}|\{%.*?%\}|[^/?#\\])*)", re.DOTALL
)
_PORT: Final = re.compile(r":\d*\Z")
_TEMPLATES: Final = ("{{", "{%")
_FULL_STOP: Final = "\N{IDEOGRAPHIC FULL STOP}"
_LOCAL: Final = "localhost"


def blocked_host(url: str) -> str | None:
    """Name the rule that forbids a URL's host; None if nothing does yet, also where a template fills it."""
    found = _AUTHORITY.match(url)
    if found is None:
        return None
    host = found[1].rpartition("@")[2]
    if any(mark in host for mark in _TEMPLATES):
        return None
    return _rule_for(_plain(host))


def _plain(host: str) -> str:
    """Read a host as the most lenient reader would, who takes any digit for one of the port, too."""
    folded = unicodedata.normalize("NFKC", unquote(host).replace(_FULL_STOP, ".")).lower()
    return _PORT.sub("", folded).removeprefix("[").removesuffix("]").rstrip(".")


def _rule_for(host: str) -> str | None:
    if host == _LOCAL or host.endswith(f".{_LOCAL}"):
        return "loopback"
    address = literal_address(host)
    return None if address is None else refusal(str(address))
