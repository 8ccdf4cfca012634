"""Whether a workspace has something turned on."""

from enum import StrEnum


class FlagState(StrEnum):
    """What a flag says."""

    ON = "on"
    OFF = "off"
