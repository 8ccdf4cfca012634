"""How an action that failed is tried again: data of its plan."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final


class Retryable(StrEnum):
    """Which errors are worth another attempt: those judged so, every one, or none."""

    AS_JUDGED = "as_judged"
    EVERY = "every"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which errors are tried again, and after what time; None is longer from one to the next.

    What is not tried again ends FAILED; what was tried for the last time is a dead letter.
    """

    errors: Retryable = Retryable.AS_JUDGED
    wait: timedelta | None = None


BY_JUDGEMENT: Final = RetryPolicy()
EVERY_MINUTE: Final = RetryPolicy(Retryable.EVERY, timedelta(seconds=60))
NEVER: Final = RetryPolicy(Retryable.NONE)
