"""Lists that walk along an index, a page at a time: what is looked at for a page is bounded (docs/api.md)."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

Row = TypeVar("Row")
Place = TypeVar("Place")

SCANNED: Final = 5_000


def gather(
    read: Callable[[int, Place | None], tuple[Sequence[Row], Place | None]], after: Place | None, most: int
) -> list[Row]:
    """Read on until there are as many rows as wanted, or no more, however far they are apart.

    `read` gives at most so many rows behind a place, and the place to go on from; None at the end.
    """
    found: list[Row] = []
    while True:
        rows, after = read(most - len(found), after)
        found += rows
        if after is None or len(found) == most:
            return found


def downward(columns: str) -> str:
    """Order by columns, the greatest first."""
    return ", ".join(f"{column} DESC" for column in columns.split(", "))
