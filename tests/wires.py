"""Names and wires that a test scripts, for the guarded way out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import httpcore2

PUBLIC = "93.184.216.34"
OTHER_PUBLIC = "1.1.1.1"


@dataclass
class FakeNames:
    """Answers lookups from a script, one answer a lookup, the last one repeated."""

    answers: Sequence[Sequence[str] | OSError]
    asked: list[str] = field(default_factory=list)

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, OSError):
            raise answer
        return answer


@dataclass
class FakeWire(httpcore2.NetworkBackend):
    """Notes which address is dialled and leads all of them to one port on loopback."""

    port: int
    dead: frozenset[str] = frozenset()
    dialled: list[tuple[str, int]] = field(default_factory=list)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        self.dialled.append((host, port))
        if host in self.dead:
            raise httpcore2.ConnectError("refused") from ConnectionRefusedError(111, "refused")
        return httpcore2.SyncBackend().connect_tcp(
            "127.0.0.1", self.port, timeout, local_address, socket_options
        )
