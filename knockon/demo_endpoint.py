"""The endpoint that the demo's webhooks call, on a free port of loopback."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Final

BUSY_ANSWERS: Final = 2


class _Endpoint(ThreadingHTTPServer):
    """Counts the calls of /busy."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.busy_calls = count(1)


class _Handler(BaseHTTPRequestHandler):
    """Takes what is sent to /busy from the third call on, and nothing that is sent to /down."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self._status())
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _status(self) -> int:
        match self.path:
            case "/busy" if isinstance(self.server, _Endpoint):
                return 503 if next(self.server.busy_calls) <= BUSY_ANSWERS else 200
            case "/down":
                return 503
            case _:
                return 404

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's name
        """Say nothing: the demo's output is its tables."""


@contextmanager
def endpoint() -> Iterator[str]:
    """Serve until the end of the block; give the address, without a slash at its end."""
    with _Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
