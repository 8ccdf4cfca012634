"""The API as a test calls it: served on a real port by a thread, with a key of each workspace."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from api.app import make_app
from api.connections import Connection
from api.service import Server, make_config
from shared.ports import open_port
from shared.process import StopFlag
from shared.services.backends import Backends, Caller
from shared.services.workspaces import Scope, create_key, create_workspace
from shared.settings import Settings
from tests.waiting import poll

READ_SCOPES = tuple(scope for scope in Scope if scope.value.endswith(":read"))


@dataclass
class Api:
    """A served API and the servers behind it."""

    url: str
    backends: Backends
    settings: Settings
    client: httpx2.Client

    def key(self, *scopes: Scope, workspace: str = "w1") -> str:
        """Make a key; without scopes it may do everything."""
        wanted = ("a key", list(scopes or Scope))
        made = create_key(
            self.backends.database, self.backends.clock, Caller(workspace, "USER cli:anna"), wanted
        )
        return made.text

    def __call__(self, method: str, path: str, *, key: str | None = None, **given: Any) -> httpx2.Response:
        """Send one request."""
        headers = {**given.pop("headers", {})}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return self.client.request(method, path, headers=headers, **given)


@contextmanager
def serving(
    settings: Settings,
    backends: Backends,
    workspaces: Sequence[str] = ("w1", "w2"),
    connection: type[Connection] = Connection,
) -> Iterator[Api]:
    """Serve the API of these servers, with these workspaces, until the block ends."""
    for workspace in workspaces:
        caller = Caller(workspace, "USER cli:anna")
        create_workspace(backends.database, backends.clock, caller, f"owner@{workspace}.example")
    stop = StopFlag()
    listener = open_port("127.0.0.1", 0)
    config = make_config(make_app(settings, backends), settings)
    config.http = connection
    server = Server(config, stop)
    thread = threading.Thread(target=asyncio.run, args=(server.serve([listener]),), daemon=True)
    thread.start()
    poll(lambda: server.started)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx2.Client(base_url=url, timeout=30, trust_env=False) as client:
            yield Api(url, backends, settings, client)
    finally:
        stop.raise_()
        thread.join(30)
        assert not thread.is_alive()
