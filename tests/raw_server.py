"""A server of raw bytes on loopback, for answers that no decent server gives."""

import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, read to its end, and the connection to answer on; `stopping` ends every wait."""

    sock: socket.socket
    path: str
    head: str
    body: bytes
    stopping: threading.Event = field(repr=False)

    def send(self, content: bytes) -> None:
        """Write all of it."""
        self.sock.sendall(content)

    def hang(self) -> None:
        """Do nothing more until the server stops."""
        self.stopping.wait()

    def drip(self, content: bytes, every_s: float = 0.02) -> None:
        """Write one byte after the other, for ever once `content` is through."""
        for byte in content:
            self.sock.sendall(bytes([byte]))
            if self.stopping.wait(every_s):
                return
        while not self.stopping.wait(every_s):
            self.sock.sendall(b"x")

    def reset(self) -> None:
        """End the connection with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


Mode = Callable[[Exchange], None]


class RawServer:
    """Reads one request a connection and lets the mode of its path answer; closes after that."""

    def __init__(self, modes: Mapping[str, Mode]) -> None:
        self.modes = modes
        self.exchanges: list[Exchange] = []
        self.stopping = threading.Event()
        self.tls: ssl.SSLContext | None = None
        self._server = _Server(self)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Give the port that the system chose."""
        return int(self._server.server_address[1])

    def wrap_with(self, context: ssl.SSLContext) -> None:
        """Speak TLS from the next connection on."""
        self.tls = context

    def url(self, path: str) -> str:
        """Give the URL of a path here."""
        return f"http://127.0.0.1:{self.port}{path}"


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: RawServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the other side hangs up on purpose."""


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def setup(self) -> None:
        if self.server.owner.tls is not None:
            self.request = self.server.owner.tls.wrap_socket(self.request, server_side=True)

    def handle(self) -> None:
        owner = self.server.owner
        received = b""
        while b"\r\n\r\n" not in received:
            chunk = self.request.recv(65536)
            if not chunk:
                return
            received += chunk
        head, _, body = received.partition(b"\r\n\r\n")
        text = head.decode("latin-1")
        path = text.split(" ", 2)[1]
        if not path.startswith("/unread"):
            body = self._rest(text, body)
        exchange = Exchange(self.request, path, text, body, owner.stopping)
        owner.exchanges.append(exchange)
        owner.modes[path](exchange)

    def finish(self) -> None:
        self.request.close()

    def _rest(self, head: str, body: bytes) -> bytes:
        lengths = [
            line.split(":")[1] for line in head.splitlines() if line.lower().startswith("content-length:")
        ]
        while lengths and len(body) < int(lengths[0]):
            body += self.request.recv(65536)
        return body
