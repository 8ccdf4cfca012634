"""A port to listen on: taken once, early, so that a taken one is told in one line."""

import os
import socket
from typing import Final

from shared.errors import SettingsError

BACKLOG: Final = 2048


def open_port(host: str, port: int) -> socket.socket:
    """Listen on API_HOST and API_PORT; port 0 is any that is free.

    Raises SettingsError that says in one line why that cannot be.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return _told_tcp(socket.create_server((host, port), family=family, backlog=BACKLOG))
    except (socket.gaierror, UnicodeError):
        raise SettingsError(f"API_HOST: {host!r} is no address of this machine") from None
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise SettingsError(f"API_PORT: cannot listen on {host}, port {port}: {why}") from None


def _told_tcp(listener: socket.socket) -> socket.socket:
    """Say of a socket that it speaks TCP, which those that it accepts say then, too.

    asyncio sends small pieces at once on such sockets only; on others an answer waits for 40 ms.
    """
    return socket.socket(listener.family, listener.type, socket.IPPROTO_TCP, fileno=listener.detach())


def free_port(host: str, port: int) -> int:
    """Give the port, or a free one for 0, once it is sure that it can be had. Raises SettingsError."""
    with open_port(host, port) as listener:
        found: int = listener.getsockname()[1]
        return found


def url_of(host: str, port: int) -> str:
    """Write the URL of a port."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
