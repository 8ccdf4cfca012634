"""A receiver of webhooks on loopback that keeps a ledger: what arrived here is the truth about effects.

Each request is one JSON line in the ledger, on disk before the answer goes out, so that the ledger survives
the death of either side. Answers follow a script: per path a list of steps, one a request, the last one
repeated. A step is a status, or an object with any of `status`, `after_s`, `headers` and `body`. A path
without a script gets 200.

    python -m tests.receiver --port-file F --ledger F [--script '{"/a": [503, 200]}']
"""

import argparse
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Step:
    """One scripted answer, given after a wait of `after_s`."""

    status: int = 200
    after_s: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""


Script = Mapping[str, Sequence[int | Step]]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request. `run_id` and `position` (from 1) are read from `webhook_id`, else empty and 0."""

    run_id: str
    position: int
    webhook_id: str
    at: float
    method: str
    path: str
    status: int
    headers: Mapping[str, str]
    body: bytes


def read_ledger(ledger: Path) -> list[Delivery]:
    """Read all deliveries so far, in order of arrival; a last line that is not whole yet is left out."""
    lines = ledger.read_text(encoding="utf-8").split("\n")[:-1] if ledger.exists() else []
    return [_from_line(line) for line in lines]


class Receiver:
    """The server. As a context manager it serves in a thread; `serve` serves in this one."""

    def __init__(self, ledger: Path, script: Script | None = None) -> None:
        self.ledger = ledger
        self.connections = 0
        self._script = {path: [_step(step) for step in steps] for path, steps in (script or {}).items()}
        self._seen: dict[str, int] = {}
        self._lock = threading.Lock()
        self._server = _Server(self)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve, daemon=True, name="receiver").start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve(self) -> None:
        """Serve until shut down."""
        self._server.serve_forever(poll_interval=0.05)

    @property
    def port(self) -> int:
        """Give the port that the system chose."""
        return int(self._server.server_address[1])

    def url(self, path: str = "/") -> str:
        """Give the URL of a path here."""
        return f"http://127.0.0.1:{self.port}{path}"

    def deliveries(self, path: str | None = None) -> list[Delivery]:
        """Read the ledger, all of it or one path's part."""
        return [one for one in read_ledger(self.ledger) if path is None or one.path == path]

    def connected(self) -> None:
        """Count one connection."""
        with self._lock:
            self.connections += 1

    def take(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Step:
        """Enter one request into the ledger and give the answer that is due."""
        with self._lock:
            steps = self._script.get(path, [Step()])
            number = self._seen.get(path, 0)
            self._seen[path] = number + 1
            step = steps[min(number, len(steps) - 1)]
            self._append(_delivery(method, path, headers, body, step.status))
        return step

    def _append(self, delivery: Delivery) -> None:
        written = asdict(delivery) | {"body": delivery.body.decode("utf-8", "surrogateescape")}
        descriptor = os.open(self.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, json.dumps(written).encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: senders die on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.receiver.connected()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        step = self.server.receiver.take(self.command, urlsplit(self.path).path, headers, body)
        if step.after_s:
            threading.Event().wait(step.after_s)
        content = step.body.encode()
        self.send_response(step.status)
        for name, value in step.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Write no log: the ledger is one."""


def _step(step: int | Step) -> Step:
    return step if isinstance(step, Step) else Step(step)


def _delivery(method: str, path: str, headers: Mapping[str, str], body: bytes, status: int) -> Delivery:
    webhook_id = headers.get("webhook-id", "")
    run_id, _, position = webhook_id.rpartition(":")
    return Delivery(
        run_id=run_id,
        position=int(position) if position.isdecimal() else 0,
        webhook_id=webhook_id,
        at=time.time(),
        method=method,
        path=path,
        status=status,
        headers=headers,
        body=body,
    )


def _from_line(line: str) -> Delivery:
    written = json.loads(line)
    return Delivery(**{**written, "body": written["body"].encode("utf-8", "surrogateescape")})


def _read_script(text: str) -> Script:
    return {
        path: [Step(**step) if isinstance(step, dict) else int(step) for step in steps]
        for path, steps in json.loads(text).items()
    }


def main() -> None:
    """Serve until killed; the port stands in the port file once the server listens."""
    parser = argparse.ArgumentParser(prog="python -m tests.receiver")
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--script", type=_read_script, default={})
    asked = parser.parse_args()
    receiver = Receiver(asked.ledger, asked.script)
    unfinished = asked.port_file.with_suffix(".part")
    unfinished.write_text(str(receiver.port), encoding="ascii")
    unfinished.rename(asked.port_file)
    receiver.serve()


if __name__ == "__main__":
    main()
