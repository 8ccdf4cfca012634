"""What a check of the doctor finds."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is; FAIL means that something will not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and what to do about it; OK has nothing to do."""

    level: Level
    subject: str
    text: str
    fix: str = ""
