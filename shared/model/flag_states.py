"""Whether a workspace has something turned on."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

# What reads a flag names it here, and says what it turns on; docs/cli.md lists them.
KNOWN_FLAGS: Final[Mapping[str, str]] = MappingProxyType({})


class FlagState(StrEnum):
    """What a flag says."""

    ON = "on"
    OFF = "off"
