"""A way to a Redis on which one answer gets lost: the command was carried out, and its sender never hears."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, urlsplit

CHUNK_BYTES = 1 << 20
SOCKET_TIMEOUT_S = 1.5  # longer than a blocking read, which lasts a second


class LossyRedis:
    """Passes all on, but for the answer to the next request with a mark: that connection falls silent."""

    def __init__(self, upstream: str, server: socket.socket) -> None:
        """Take connections on `server`, a listening socket."""
        self._upstream = upstream
        self._server = server
        self._mark: bytes | None = None
        self._lock = threading.Lock()
        self.lost = threading.Event()

    @property
    def url(self) -> str:
        """Give the address of this way; its clients wait for an answer as briefly as they can."""
        number = parse_qs(urlsplit(self._upstream).query)["db"][0]
        port = self._server.getsockname()[1]
        return f"redis://127.0.0.1:{port}/{number}?socket_timeout={SOCKET_TIMEOUT_S}"

    def lose(self, mark: bytes) -> None:
        """Lose the answer to the next request that holds `mark`; `lost` tells when that was."""
        with self._lock:
            self._mark = mark

    def serve(self) -> None:
        """Take connections until the socket closes."""
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._link, args=(client,), daemon=True).start()

    def _link(self, client: socket.socket) -> None:
        redis = connect(self._upstream)
        silent = threading.Event()
        threading.Thread(target=self._answer, args=(redis, client, silent), daemon=True).start()
        with client, redis, suppress(OSError):
            while request := client.recv(CHUNK_BYTES):
                if self._is_marked(request):
                    silent.set()
                redis.sendall(request)

    def _answer(self, redis: socket.socket, client: socket.socket, silent: threading.Event) -> None:
        with suppress(OSError):
            while answer := redis.recv(CHUNK_BYTES):
                if silent.is_set():
                    self.lost.set()
                else:
                    client.sendall(answer)

    def _is_marked(self, request: bytes) -> bool:
        with self._lock:
            if self._mark is None or self._mark not in request:
                return False
            self._mark = None
            return True


def connect(url: str) -> socket.socket:
    """Connect to a Redis by its URL."""
    where = urlsplit(url)
    if where.scheme == "unix":
        opened = socket.socket(socket.AF_UNIX)
        opened.connect(where.path)
        return opened
    return socket.create_connection((where.hostname or "127.0.0.1", where.port or 6379))


@contextmanager
def open_lossy(redis_url: str) -> Iterator[LossyRedis]:
    """Open a way that ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        way = LossyRedis(redis_url, server)
        threading.Thread(target=way.serve, daemon=True).start()
        yield way
