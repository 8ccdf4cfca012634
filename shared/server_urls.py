"""Whether the URL of a server can be used, told without a word of what it holds: any part may be a password.

The settings ask when they are read, so that no library meets a URL which it would quote in its own error.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from redis.connection import parse_url
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

REDIS_SCHEMES: Final = ("redis", "rediss", "unix")
DATABASE_SCHEMES: Final = ("postgresql", "postgresql+psycopg", "sqlite")
MAX_PORT: Final = 65_535

_REDIS_OPTIONS: Final = frozenset(
    (
        *("db", "username", "password", "client_name", "protocol", "legacy_responses", "max_connections"),
        *("socket_timeout", "socket_connect_timeout", "socket_read_size", "socket_keepalive"),
    )
)
_TLS_OPTIONS: Final = frozenset(
    (
        *("ssl_cert_reqs", "ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password"),
        *("ssl_check_hostname", "ssl_min_version", "ssl_include_verify_flags", "ssl_exclude_verify_flags"),
    )
)
_POSTGRES_OPTIONS: Final = frozenset(
    (
        *("host", "hostaddr", "port", "user", "password", "passfile", "dbname", "service", "connect_timeout"),
        *("application_name", "fallback_application_name", "client_encoding", "options", "channel_binding"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
        *("sslmode", "sslnegotiation", "sslcompression", "sslcert", "sslkey", "sslcertmode", "sslpassword"),
        *("sslrootcert", "sslcrl", "sslcrldir", "sslsni", "requirepeer", "require_auth"),
        *("ssl_min_protocol_version", "ssl_max_protocol_version", "gssencmode", "krbsrvname", "gsslib"),
        *("gssdelegation", "target_session_attrs", "load_balance_hosts"),
    )
)
_NO_PORT: Final = "its port is no number from 1 to 65535"
_NO_HOST: Final = "its host is no name or address"
_ENCODE: Final = "in a password write %2F for /, %3F for ?, %23 for #, %25 for %, %40 for @, %20 for a blank"
_NAME: Final = re.compile(r"[a-z_]{1,40}")
_AFTER_IPV6: Final = re.compile(r"(?:@|://)\[[^/?\]]*\][^:/?]")
_BAD_IN_HOST: Final = re.compile(r"[\s\[\]@<>\"'\\]")


def check_redis_url(url: str) -> str:
    """Give the URL back. Raises ValueError with what is wrong, and with no part of a password."""
    _check_scheme(url, REDIS_SCHEMES)
    said = _redis_fault(url)
    if said is not None:
        raise ValueError(f"{said}; {_ENCODE}" if "@" in _after_place(url) else said)
    return url


def check_database_url(url: str) -> str:
    """Give the URL back. Raises ValueError with what is wrong, and with no part of the URL."""
    _check_scheme(url, DATABASE_SCHEMES)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError(f"is not a URL: {_NO_PORT}, or {_NO_HOST}") from None
    is_sqlite = parsed.get_backend_name() == "sqlite"
    said = _sqlite_fault(parsed) if is_sqlite else _postgres_fault(parsed, url)
    if said is not None:
        raise ValueError(said)
    return url


def _check_scheme(url: str, schemes: Sequence[str]) -> None:
    scheme, mark, rest = url.partition("://")
    if scheme not in schemes or not mark or not rest:
        wanted = ", ".join(f"{name}://" for name in schemes)
        raise ValueError(f"must be a URL that starts with one of {wanted}")


def _redis_fault(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return _NO_HOST
    options = _TLS_OPTIONS | _REDIS_OPTIONS if parts.scheme == "rediss" else _REDIS_OPTIONS
    if parts.scheme != "unix":
        said = _place_fault(parts)
        if said is not None:
            return said
    elif not parts.path.strip("/"):
        return "it names no socket"
    if parts.fragment or "#" in url:
        return "it has a # in it"
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    return _options_fault(names, options, url) or _value_fault(url)


def _place_fault(parts: SplitResult) -> str | None:
    if re.search(r"\s", parts.netloc):
        return "it has a blank in it"
    try:
        said = _host_fault(parts.hostname, parts.port)
    except ValueError:
        return _NO_PORT
    database = parts.path.strip("/")
    if said is None and database and not (database.isascii() and database.isdigit()):
        return "the path after its host is no database number, such as /0"
    return said


def _value_fault(url: str) -> str | None:
    parse: Callable[[str], object] = parse_url
    try:
        parse(url)
    except (ValueError, TypeError):
        return "a parameter has a value that cannot be read"
    return None


def _postgres_fault(parsed: URL, url: str) -> str | None:
    if _AFTER_IPV6.search(url):
        return _NO_HOST
    said = _host_fault(parsed.host, parsed.port)
    return said or _options_fault(parsed.query, _POSTGRES_OPTIONS, url)


def _sqlite_fault(url: URL) -> str | None:
    if url.host or url.username or url.port:
        return "names a file with three slashes and its path: sqlite:///folder/file.db, sqlite:////folder/file.db"
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        return "names no file; several processes share the database, so it cannot be in memory"
    return "a sqlite:// URL takes no parameters" if url.query else None


def _host_fault(host: str | None, port: int | None) -> str | None:
    if port is not None and not 1 <= port <= MAX_PORT:
        return _NO_PORT
    if host and ":" in host:
        try:
            ip_address(host)
        except ValueError:
            return _NO_HOST
    return _NO_HOST if host and _BAD_IN_HOST.search(host) else None


def _options_fault(names: Iterable[str], known: frozenset[str], url: str) -> str | None:
    for name in names:
        if name not in known:
            is_tellable = "@" not in _after_place(url) and _NAME.fullmatch(name)
            return f"it has the unknown parameter {name}" if is_tellable else "it has an unknown parameter"
    return None


def _after_place(url: str) -> str:
    """Give what follows host and port, where half of a password stands that was not encoded."""
    return "".join(re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[1:])
