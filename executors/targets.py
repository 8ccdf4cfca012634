"""Where a request goes: a URL, taken apart and judged by its text alone."""

import base64
import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final, NamedTuple

import httpx2

from shared.errors import FatalError
from shared.rules.addresses import literal_address

BAD_URL: Final = "WEBHOOK_BAD_URL"
SHOWN_PATH_LIMIT: Final = 200
URL_LIMIT: Final = 8192

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_AUTHORITY: Final = re.compile(r"(?:[^:/?#]+:)?//([^/?#]*)")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


class Origin(NamedTuple):
    """What has to be equal for two requests to reach the same party."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Target:
    """A usable URL. `url` has no credentials or fragment; `authorization` is the header they stood for."""

    url: httpx2.URL
    origin: Origin
    authorization: str | None

    @property
    def host(self) -> str:
        """Give the host in ASCII, without brackets or trailing dot."""
        return self.origin.host

    @property
    def path(self) -> str:
        """Give the path without the query, cut for show."""
        return self.url.path[:SHOWN_PATH_LIMIT]

    @property
    def shown(self) -> str:
        """Write the URL for messages: neither credentials nor query."""
        return f"{self.origin.scheme}://{self.url.netloc.decode('ascii')}{self.path}"


def parse_target(text: str) -> Target:
    """Take a URL apart. Raises FatalError WEBHOOK_BAD_URL with the reason, never with the URL."""
    _check_text(text)
    try:
        return _target(httpx2.URL(text))
    except httpx2.InvalidURL as error:
        raise FatalError(BAD_URL, "the URL cannot be read") from error


def redirect_target(origin: Target, location: str) -> Target:
    """Take a redirect's Location apart; it may be relative. Credentials in it are ignored."""
    _check_text(location)
    try:
        joined = origin.url.join(location)
    except httpx2.InvalidURL as error:
        raise FatalError(BAD_URL, "the redirect's Location cannot be read") from error
    target = parse_target(str(joined))
    return Target(target.url, target.origin, None)


def _check_text(text: str) -> None:
    """Refuse what two readers could take for two different hosts."""
    if len(text) > URL_LIMIT:
        raise FatalError(BAD_URL, f"the URL is longer than {URL_LIMIT} characters")
    if _CONTROL.search(text):
        raise FatalError(BAD_URL, "the URL holds a control character")
    authority = _AUTHORITY.match(text)
    if authority is not None and (authority[1].count("@") > 1 or "\\" in authority[1]):
        raise FatalError(BAD_URL, "the URL's host cannot be told for sure")


def _target(url: httpx2.URL) -> Target:
    if url.scheme not in _DEFAULT_PORTS:
        raise FatalError(BAD_URL, "the URL is neither http nor https")
    port = _DEFAULT_PORTS[url.scheme] if url.port is None else url.port
    if not 0 < port < 65536:
        raise FatalError(BAD_URL, "the URL's port is not one")
    host = _checked_host(url.raw_host.decode("ascii").lower())
    plain = url.copy_with(host=host, userinfo=b"", fragment=None)
    return Target(plain, Origin(url.scheme, host, port), _authorization(url))


def _checked_host(raw: str) -> str:
    host = raw.removesuffix(".")
    if "%" not in host and isinstance(literal_address(host), IPv6Address):
        return host
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise FatalError(BAD_URL, "the URL's host is neither a name nor an address")
    return host


def _authorization(url: httpx2.URL) -> str | None:
    if not url.userinfo:
        return None
    pair = f"{url.username}:{url.password}".encode()
    return f"Basic {base64.b64encode(pair).decode('ascii')}"
