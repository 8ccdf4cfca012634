"""How long a run waits before its next attempt at an action that failed and may be tried again."""

from typing import Final

MAX_BACKOFF_S: Final = 600
_DOUBLINGS_TO_MAX: Final = 10


def run_backoff_seconds(n: int) -> int:
    """Give the wait in seconds after failure `n` of one action: 1, 2, 4 and so on, never above 600.

    `n` counts from 1; anything below raises ValueError.
    """
    if n < 1:
        raise ValueError(f"failures are counted from 1, not {n}")
    return int(min(2 ** min(n - 1, _DOUBLINGS_TO_MAX), MAX_BACKOFF_S))
