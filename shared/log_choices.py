"""How a process logs: what the settings offer, and what the set-up of the log asks of them."""

from enum import StrEnum
from typing import Protocol


class LogFormat(StrEnum):
    """How log lines look; AUTO is CONSOLE on a terminal and JSON elsewhere."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    """The least severe log line that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogChoices(Protocol):
    """What was chosen for a process."""

    @property
    def log_level(self) -> LogLevel:
        """Give the least severe line that is written."""

    @property
    def log_format(self) -> LogFormat:
        """Give how lines look."""
