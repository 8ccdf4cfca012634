"""Connections to checked addresses only: the name is looked up once, judged, and the very address is dialled.

The HTTP core connects to origins. Here the host of an origin is a route, `{address}/{name}`, so a connection
serves only the name that was looked up, at the address that was checked, and TLS still verifies the name.
The core hands its timeouts through to the stream as they are, so here they are readings of the monotonic
clock: fixed instants, which no number of small reads can outlive.
"""

import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import httpcore2

from executors.deadline import ACTION_TIMEOUT, Deadline
from executors.targets import Target
from shared.errors import FatalError
from shared.rules.addresses import literal_address, refusal
from shared.time.clock import Clock

BLOCKED: Final = "WEBHOOK_BLOCKED"
UNRESOLVABLE: Final = "WEBHOOK_UNRESOLVABLE"

CONNECT_TIMEOUT_S: Final = 10.0
LOOKUPS_AT_ONCE: Final = 16
ADDRESSES_TRIED: Final = 4
WRITE_CHUNK_BYTES: Final = 65536

Lookup = Callable[[str, int], Sequence[str]]
_Found = tuple[str, ...] | Exception


def system_lookup(host: str, port: int) -> Sequence[str]:
    """Ask the system's resolver for all addresses of a name, in its order of preference. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class Resolver:
    """Looks names up in threads of its own, few at once, since a lookup knows no timeout."""

    def __init__(self, lookup: Lookup) -> None:
        """Keep the function that asks."""
        self._lookup = lookup
        self._slots = threading.BoundedSemaphore(LOOKUPS_AT_ONCE)

    def addresses(self, target: Target, deadline: Deadline) -> tuple[str, ...]:
        """Give the addresses of a target; one in any spelling stands for itself.

        Raises FatalError if there is none, TimeoutError after 10 s, OSError if asking again may help.
        """
        literal = literal_address(target.host)
        if literal is not None:
            return (str(literal),)
        found = self._ask(target, deadline)
        if isinstance(found, socket.gaierror) and found.errno == socket.EAI_AGAIN:
            raise found
        if isinstance(found, Exception) or not found:
            raise FatalError(UNRESOLVABLE, f"{target.host} has no address")
        return found

    def _ask(self, target: Target, deadline: Deadline) -> _Found:
        answer: queue.SimpleQueue[_Found] = queue.SimpleQueue()
        if not self._slots.acquire(timeout=_connect_left_s(deadline)):
            raise TimeoutError(f"no lookup of {target.host} within {CONNECT_TIMEOUT_S:g} s")
        threading.Thread(target=self._work, args=(target, answer), daemon=True, name="lookup").start()
        try:
            return answer.get(timeout=_connect_left_s(deadline))
        except queue.Empty as error:
            raise TimeoutError(f"no answer for {target.host} within {CONNECT_TIMEOUT_S:g} s") from error

    def _work(self, target: Target, answer: queue.SimpleQueue[_Found]) -> None:
        try:
            answer.put(tuple(self._lookup(target.host, target.origin.port)))
        except (OSError, UnicodeError) as error:
            answer.put(error)
        finally:
            self._slots.release()


def check_addresses(target: Target, addresses: Iterable[str]) -> None:
    """Raise FatalError WEBHOOK_BLOCKED, naming the rule, if any of them is not globally routable."""
    for address in addresses:
        rule = refusal(address)
        if rule is not None:
            raise FatalError(BLOCKED, f"{target.host} leads to {address}, which is not allowed: {rule}")


def route(address: str, target: Target) -> str:
    """Name a checked address of a target for the pool."""
    return f"{address}/{target.host}"


def timeouts(deadline: Deadline, tries: int) -> dict[str, float]:
    """Give the core's timeouts, as instants but for the pool's; `tries` share the time to connect."""
    connect_s = min(CONNECT_TIMEOUT_S, deadline.remaining_s()) / tries
    return {
        "connect": deadline.clock.monotonic() + connect_s,
        "read": deadline.at,
        "write": deadline.at,
        "pool": deadline.remaining_s(),
    }


class RouteBackend(httpcore2.NetworkBackend):
    """Dials the address of a route, and nothing that is not a route."""

    def __init__(self, network: httpcore2.NetworkBackend, clock: Clock) -> None:
        """Dial through `network`; `clock` reads what is left until an instant."""
        self._network = network
        self._clock = clock

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the route `host`; the signature is the core's."""
        address, _, name = host.partition("/")
        if not name:
            raise httpcore2.ConnectError("the host is not a checked route")
        left_s = _left_s(self._clock, timeout, httpcore2.ConnectTimeout)
        inner = self._network.connect_tcp(address, port, left_s, local_address, socket_options)
        return InstantStream(inner, self._clock)


class InstantStream(httpcore2.NetworkStream):
    """A connection whose timeouts are instants of the monotonic clock."""

    def __init__(self, inner: httpcore2.NetworkStream, clock: Clock) -> None:
        """Wrap a stream of the core."""
        self._inner = inner
        self._clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what is there, at the latest by `timeout`."""
        return self._inner.read(max_bytes, _left_s(self._clock, timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of it by `timeout`, however slowly the other side takes it."""
        sock: socket.socket = self._inner.get_extra_info("socket")
        view = memoryview(buffer)
        while view:
            left_s = _left_s(self._clock, timeout, httpcore2.WriteTimeout)
            try:
                sock.settimeout(left_s)
                sent = sock.send(view[:WRITE_CHUNK_BYTES])
            except TimeoutError as error:
                raise httpcore2.WriteTimeout(str(error)) from error
            except OSError as error:
                raise httpcore2.WriteError(str(error)) from error
            view = view[sent:]

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Go on under TLS, verified for `server_hostname`."""
        left_s = _left_s(self._clock, timeout, httpcore2.ConnectTimeout)
        return InstantStream(self._inner.start_tls(ssl_context, server_hostname, left_s), self._clock)

    def get_extra_info(self, info: str) -> object:
        """Tell what the core asks of a stream."""
        return self._inner.get_extra_info(info)


def _connect_left_s(deadline: Deadline) -> float:
    left_s = deadline.remaining_s()
    if left_s <= 0:
        raise FatalError(ACTION_TIMEOUT, "no time was left to connect")
    return min(CONNECT_TIMEOUT_S, left_s)


def _left_s(clock: Clock, instant: float | None, late: type[httpcore2.TimeoutException]) -> float | None:
    if instant is None:
        return None
    left_s = instant - clock.monotonic()
    if left_s <= 0:
        raise late("timed out")
    return left_s
