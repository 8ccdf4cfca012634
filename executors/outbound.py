"""The only way out: one guarded HTTP exchange, without redirects, proxies, cookies or netrc.

Every exchange looks its name up, refuses if any answer is not globally routable, and talks to the very
address that was judged. The deadline is total: looking up, connecting, sending and reading the body share it.
One `Outbound` serves all threads of a process.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpcore2
import httpx2

from executors.deadline import ACTION_TIMEOUT, Deadline
from executors.dialing import (
    ADDRESSES_TRIED,
    CONNECT_TIMEOUT_S,
    Lookup,
    Resolver,
    RouteBackend,
    check_addresses,
    route,
    system_lookup,
    timeouts,
)
from executors.targets import Target
from shared.errors import FatalError, RetryableError
from shared.time.clock import Clock

KEPT_BYTES: Final = 64 * 1024
READ_BYTES: Final = 1024 * 1024
POOL_SIZE: Final = 200

_CLOSED_EARLY: Final = ("disconnected without sending", "peer closed connection")


@dataclass(frozen=True, slots=True)
class OutboundPolicy:
    """`allow_private` lifts the guard; `webhook_secret` signs where the action names no other."""

    allow_private: bool = False
    webhook_secret: str | None = None


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """What to send; `headers` are complete but for Host and Content-Length.

    `allow_private` lifts the guard for this one target, for a host that the operator named; `kept_bytes` is
    how much of the answer is kept, 1 MiB at most.
    """

    method: str
    target: Target
    headers: Mapping[str, str]
    body: bytes
    allow_private: bool = False
    kept_bytes: int = KEPT_BYTES


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: `body` is its beginning as sent, never decompressed; `is_cut`: there was more."""

    status: int
    headers: httpx2.Headers
    body: bytes
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Network:
    """How names and addresses are reached; a test puts its own resolver or wire here."""

    lookup: Lookup = system_lookup
    wire: httpcore2.NetworkBackend | None = None
    tls: ssl.SSLContext | None = None


class Outbound:
    """One connection an exchange, to a checked address; at most 200 at a time."""

    def __init__(self, policy: OutboundPolicy, clock: Clock, network: Network | None = None) -> None:
        """Open nothing yet. Certificates are verified against the system's store, or SSL_CERT_FILE."""
        network = network or Network()
        self.policy = policy
        self.clock = clock
        self._resolver = Resolver(network.lookup)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=network.tls or httpx2.create_ssl_context(),
            max_connections=POOL_SIZE,
            max_keepalive_connections=0,  # bytes behind an answer would be taken for the next one
            network_backend=RouteBackend(network.wire or httpcore2.SyncBackend(), clock),
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def exchange(self, request: OutboundRequest, deadline: Deadline) -> Answer:
        """Send once and read the answer, whatever its status; a redirect comes back as it is.

        Raises FatalError for a refused address and a passed deadline, RetryableError if the other side hung
        up, and OSError for the rest (`executors.classify` judges it). Messages show scheme, host and path.
        """
        deadline.check()
        try:
            addresses = self._resolver.addresses(request.target, deadline)
            if not (self.policy.allow_private or request.allow_private):
                check_addresses(request.target, addresses)
            return self._try_addresses(request, addresses[:ADDRESSES_TRIED], deadline)
        except (httpcore2.TimeoutException, TimeoutError) as error:
            raise _timed_out(request, error, deadline) from error
        except (httpcore2.NetworkError, OSError) as error:
            raise ConnectionError(f"{_shown(request)}: {error}") from error
        except httpcore2.LocalProtocolError as error:
            raise FatalError("CONFIG_INVALID", f"{_shown(request)} cannot be sent: {error}") from error
        except httpcore2.RemoteProtocolError as error:
            raise _broken(request, error) from error

    def _try_addresses(
        self, request: OutboundRequest, addresses: tuple[str, ...], deadline: Deadline
    ) -> Answer:
        """Go on to the next address only while nothing was sent, that is, while connecting fails."""
        for tries_left in range(len(addresses), 1, -1):
            try:
                return self._exchange_at(request, addresses[-tries_left], timeouts(deadline, tries_left))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return self._exchange_at(request, addresses[-1], timeouts(deadline, 1))

    def _exchange_at(self, request: OutboundRequest, address: str, limits: Mapping[str, float]) -> Answer:
        url = request.target.url
        headers = [
            (name.encode("ascii", "replace"), value.encode()) for name, value in request.headers.items()
        ]
        message = httpx2.Request(request.method, url, headers=headers, content=request.body)
        response = self._pool.handle_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(
                    scheme=url.raw_scheme,
                    host=route(address, request.target).encode("ascii"),
                    port=request.target.origin.port,
                    target=url.raw_path,
                ),
                headers=message.headers.raw,
                content=request.body,
                extensions={"timeout": dict(limits), "sni_hostname": request.target.host},
            )
        )
        return _read(response, request.kept_bytes)


def _read(response: httpcore2.Response, most_bytes: int) -> Answer:
    """Keep so much, read on to 1 MiB so that the other side ends in peace, and hang up beyond."""
    kept = bytearray()
    size_bytes = 0
    try:
        for chunk in response.iter_stream():
            size_bytes += len(chunk)
            kept += chunk[: most_bytes - len(kept)]
            if size_bytes > READ_BYTES:
                break
    finally:
        response.close()
    return Answer(response.status, httpx2.Headers(response.headers), bytes(kept), size_bytes > most_bytes)


def _shown(request: OutboundRequest) -> str:
    return f"{request.method} {request.target.shown}"


def _timed_out(request: OutboundRequest, error: Exception, deadline: Deadline) -> Exception:
    """Tell our deadline from a connection that did not come up within its own 10 s."""
    connecting = isinstance(error, httpcore2.ConnectTimeout | TimeoutError)
    if connecting and not deadline.is_passed():
        return TimeoutError(f"{_shown(request)}: no connection within {CONNECT_TIMEOUT_S:g} s")
    return FatalError(ACTION_TIMEOUT, f"{_shown(request)} did not answer within its time")


def _broken(request: OutboundRequest, error: httpcore2.RemoteProtocolError) -> Exception:
    """Take a connection that ended before its answer did for a reset, as other clients do."""
    if any(text in str(error) for text in _CLOSED_EARLY):
        return RetryableError(
            "NET_ECONNRESET", f"{_shown(request)}: the connection closed before the answer ended"
        )
    return FatalError("UNEXPECTED", f"{_shown(request)} answered what is not HTTP: {error}")
