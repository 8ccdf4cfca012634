"""Whether a workspace has something turned on."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

SEQUENTIAL_IDLE: Final = "ai_agent_sequential_idle"


class FlagState(StrEnum):
    """What a flag says."""

    ON = "on"
    OFF = "off"


class FlagReach(StrEnum):
    """Who has to turn a flag on: each workspace for itself, or the whole installation beside it."""

    WORKSPACE = "workspace"
    INSTALLATION_TOO = "installation_too"


@dataclass(frozen=True, slots=True)
class KnownFlag:
    """What a flag turns on, and who has to say so. With two halves each is off where it was never set."""

    turns_on: str
    reach: FlagReach = FlagReach.WORKSPACE


# What reads a flag names it here, and says what it turns on; docs/cli.md lists them.
KNOWN_FLAGS: Final[Mapping[str, KnownFlag]] = MappingProxyType(
    {SEQUENTIAL_IDLE: KnownFlag("idle sequences of AI agents in several steps", FlagReach.INSTALLATION_TOO)}
)


def has_two_halves(name: str) -> bool:
    """Tell whether a flag is on only where the whole installation and the workspace say so."""
    known = KNOWN_FLAGS.get(name)
    return known is not None and known.reach is FlagReach.INSTALLATION_TOO


def in_effect(name: str, here: FlagState | None, everywhere: FlagState | None) -> FlagState | None:
    """Give what a flag comes to in a workspace; None where that is left to whoever reads it."""
    if not has_two_halves(name):
        return here
    return FlagState.ON if here is everywhere is FlagState.ON else FlagState.OFF
