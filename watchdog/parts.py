"""What the watchdog works with in one process. Built by whoever starts it."""

from dataclasses import dataclass

from shared.services.backends import Backends
from shared.settings import Settings


@dataclass(frozen=True, slots=True)
class Parts(Backends):
    """The servers, and `owner`: our name on the lock by which several watchdogs elect one."""

    settings: Settings
    owner: str
