"""The process: a port of ours, served until the process is asked to end."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from typing_extensions import override

from api.app import make_app
from shared.errors import SettingsError
from shared.logs import get_logger
from shared.process import StopFlag
from shared.services.backends import open_backends
from shared.settings import Settings

POOL_SIZE: Final = 20
BACKLOG: Final = 2048
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
        return self._stop.is_raised() or await super().on_tick(counter)

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the flag."""
        yield


def serve(settings: Settings) -> int:
    """Serve the API in this process until it is asked to end; give its exit code.

    Raises SettingsError where an address is missing, or the port cannot be had.
    """
    stop = StopFlag()
    stop.listen()
    listener = open_port(settings)
    backends = open_backends(settings, POOL_SIZE)
    config = uvicorn.Config(
        make_app(settings, backends),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(settings.shutdown_grace_s),
    )
    log.info("api_started", url=url_of(listener))
    asyncio.run(Server(config, stop).serve([listener]))
    backends.close()
    log.info("api_stopped")
    return 0


def open_port(settings: Settings) -> socket.socket:
    """Listen on API_HOST and API_PORT. Raises SettingsError that says in one line why that cannot be."""
    host, port = settings.api_host, settings.api_port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except socket.gaierror:
        raise SettingsError(f"API_HOST: {host!r} is no address of this machine") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise SettingsError(f"API_PORT: cannot listen on {host} port {port}: {why}") from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Give the address that a listener has."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
