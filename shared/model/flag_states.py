"""Whether a workspace has something turned on."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

# What reads a flag names it here, and says what it turns on; docs/cli.md lists them.
SEQUENTIAL_IDLE: Final = "ai_agent_sequential_idle"
KNOWN_FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {SEQUENTIAL_IDLE: "idle sequences of AI agents in several steps"}
)


class FlagState(StrEnum):
    """What a flag says."""

    ON = "on"
    OFF = "off"
