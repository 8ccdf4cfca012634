"""The process: a port of ours, served until the process is asked to end."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from fastapi import FastAPI
from typing_extensions import override

from api.app import end_answers, make_app
from api.beating import beating
from api.connections import Connection
from api.metrics import served_apart
from shared.db.engine import Patience
from shared.logs import get_logger
from shared.ports import open_port, url_of
from shared.process import StopFlag
from shared.services.backends import open_backends
from shared.settings import Settings

POOL_SIZE: Final = 30  # with what the engine adds, one for each thread of ours that may want one
PATIENCE: Final = Patience(connection_s=5.0, lock_s=10.0, statement_s=15.0)
KEEP_ALIVE_S: Final = 75

log: Final = get_logger("api")


class Server(uvicorn.Server):
    """The server, which ends when the flag of the process is raised."""

    def __init__(self, config: uvicorn.Config, stop: StopFlag) -> None:
        """Serve what `config` names."""
        super().__init__(config)
        self._stop = stop

    @override
    async def on_tick(self, counter: int) -> bool:
        if not self._stop.is_raised():
            return await super().on_tick(counter)
        if isinstance(self.config.app, FastAPI):
            end_answers(self.config.app)
        return True

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the flag."""
        yield


def make_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Say how the application is served."""
    return uvicorn.Config(
        app,
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(settings.shutdown_grace_s),
    )


def serve(settings: Settings) -> int:
    """Serve the API in this process until it is asked to end; give its exit code.

    Raises SettingsError where an address is missing, or the port cannot be had.
    """
    stop = StopFlag()
    stop.listen()
    listener = open_port(settings.api_host, settings.api_port)
    backends = open_backends(settings, POOL_SIZE, PATIENCE)
    app = make_app(settings, backends)
    config = make_config(app, settings)
    log.info("api_started", url=url_of(*listener.getsockname()[:2]))
    with served_apart(settings, app.state.metrics), beating(backends):
        asyncio.run(Server(config, stop).serve([listener]))
    backends.close()
    log.info("api_stopped")
    return 0
