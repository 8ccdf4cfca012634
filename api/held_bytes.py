"""How many bytes of bodies this process holds at a time: bounded for all, and for each workspace."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from api.errors import RETRY_AFTER_S, Refused

ALL_MAX: Final = 67_108_864
WORKSPACE_MAX: Final = 33_554_432


class HeldBytes:
    """Counts what is held; used by one event loop alone."""

    def __init__(self, most: int = ALL_MAX, most_of_one: int = WORKSPACE_MAX) -> None:
        """Hold no more than this, and no more than that for one workspace."""
        self._most = most
        self._most_of_one = most_of_one
        self._held: Counter[str] = Counter()

    @contextmanager
    def holding(self, workspace_id: str) -> Iterator[Callable[[int], None]]:
        """Give what takes so many bytes more for a workspace, until the block ends.

        What is given raises Refused, 503, where they cannot be held.
        """
        mine = 0

        def take(size: int) -> None:
            nonlocal mine
            if self._held[workspace_id] + size > self._most_of_one or self._held.total() + size > self._most:
                raise Refused(503, "as many bodies as can be held are being worked on").retry_after(
                    RETRY_AFTER_S
                )
            self._held[workspace_id] += size
            mine += size

        try:
            yield take
        finally:
            self._held[workspace_id] -= mine
            if not self._held[workspace_id]:
                del self._held[workspace_id]
