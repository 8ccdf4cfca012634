"""A port of this machine that nobody should call: it counts who does, and answers nobody."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Trap:
    """A listening socket; the system takes connections, and nothing is ever said on them."""

    listener: socket.socket
    caught: list[socket.socket] = field(default_factory=list)

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    def count(self) -> int:
        """Count the connections that there were so far."""
        while True:
            try:
                self.caught.append(self.listener.accept()[0])
            except BlockingIOError:
                return len(self.caught)


@contextmanager
def trap() -> Iterator[Trap]:
    """Set a trap for the length of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        found = Trap(listener)
        yield found
        for each in found.caught:
            each.close()
