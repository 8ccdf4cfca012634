"""Before there is a request: connections that send nothing, heads that do not end, bodies that pile up."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import pytest

from api.connections import Connection
from shared.services.backends import Backends
from shared.services.workspaces import Scope
from shared.settings import Settings
from tests.calling import Api, serving
from tests.waiting import poll

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Impatient(Connection):
    head_within_s = 0.2


@pytest.fixture
def impatient(settings: Settings, backends: Backends) -> Iterator[Api]:
    with serving(settings, backends, connection=Impatient) as served:
        yield served


@contextmanager
def connected(api: Api) -> Iterator[socket.socket]:
    port = int(api.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        yield sock


def read_all(sock: socket.socket) -> bytes:
    found = b""
    while piece := sock.recv(65_536):
        found += piece
    return found


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"POST /v1/flags HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 70_000,
        b"\x16\x03\x01 hello\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_as_all_is(api: Api, sent: bytes) -> None:
    with connected(api) as sock:
        sock.sendall(sent)
        head, _, body = read_all(sock).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"x-request-id: " in head.lower()
    assert b"x-content-type-options: nosniff" in head.lower()
    assert orjson.loads(body).keys() == {"error", "message", "details"}


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
def test_a_connection_without_a_whole_head_is_closed(impatient: Api, sent: bytes) -> None:
    with connected(impatient) as sock:
        sock.sendall(sent)
        assert read_all(sock) == b""
    with connected(impatient) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert read_all(sock).startswith(b"HTTP/1.1 200 ")


def test_a_half_head_after_an_answer_is_closed_too(impatient: Api) -> None:
    with connected(impatient) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200 ")
        sock.sendall(b"GET /healthz HT")
        assert b"HTTP/1.1" not in read_all(sock)


def test_unfinished_bodies_of_one_workspace_leave_room_for_another(api: Api) -> None:
    """Three bodies of 15 MiB are more than the 32 MiB of a workspace, and are over with their connections."""
    writer, other = api.key(Scope.EVENTS_WRITE), api.key(Scope.EVENTS_WRITE, workspace="w2")
    size = 15 * 1_048_576
    told: list[bytes] = []

    def send(sock: socket.socket) -> None:
        head = f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {writer}\r\n"
        sock.sendall(f"{head}Content-Length: {size + 1}\r\n\r\n".encode())
        try:
            sock.sendall(b" " * size)
            told.append(sock.recv(65_536))
        except OSError:
            told.append(b"broken off")

    with connected(api) as one, connected(api) as two, connected(api) as three:
        for sock in (one, two, three):
            threading.Thread(target=send, args=(sock,), daemon=True).start()
        poll(lambda: told)
        assert told[0].startswith(b"HTTP/1.1 503 ") or told[0] == b"broken off"
        event = {"type": "order.placed", "payload": {}}
        assert api("POST", "/v1/events", key=other, json=event).status_code == 202
    poll(lambda: api("POST", "/v1/events", key=writer, json=event).status_code == 202)
