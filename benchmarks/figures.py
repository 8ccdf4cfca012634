"""The arithmetic of measurements. Pure."""

import math
import statistics
from collections.abc import Sequence
from datetime import datetime


def median(values: Sequence[float]) -> float:
    """Give the value in the middle; of an even number, the mean of the two there. Raises on no values."""
    return float(statistics.median(values))


def percentile(values: Sequence[float], percent: float) -> float:
    """Give the smallest value that `percent` of the values do not exceed (nearest rank).

    Raises ValueError on no values and outside of 0 to 100.
    """
    if not values or not 0 <= percent <= 100:
        raise ValueError("a percentile needs values, and 0 to 100 percent")
    rank = max(1, math.ceil(len(values) * percent / 100))
    return sorted(values)[rank - 1]


def per_second(count: int, first: datetime, last: datetime) -> float:
    """Give how many there were a second between two instants. Raises ValueError if no time lies between."""
    seconds = (last - first).total_seconds()
    if seconds <= 0:
        raise ValueError("no time has passed")
    return count / seconds


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Give what each round's value is in units of the other's of the same round."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def shown(value: float) -> str:
    """Write a value with about three figures that count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
