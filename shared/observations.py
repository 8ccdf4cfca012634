"""Durations that are counted in buckets (docs/metrics.md), sent to Redis with commands that go there anyway.

Each measure is one hash: a field for each bucket, which counts what fell into it and no smaller one, and the
sum. A batch that is lost with its process is missing from the counts, and nothing else.
"""

from bisect import bisect_left
from collections import Counter
from datetime import timedelta
from enum import StrEnum
from typing import Final

from shared.keys import Keys, observed_key
from shared.redis_port import PipelinePort

BOUNDS_S: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    1800.0,
    3600.0,
)
BUCKETS: Final = (*(f"{bound:g}" for bound in BOUNDS_S), "+Inf")
SUM: Final = "sum_us"
_MICROSECOND: Final = timedelta(microseconds=1)


class Measure(StrEnum):
    """What is measured. Runs are told apart by how they ended."""

    EVENT_TO_RUN = "event_to_run"
    QUEUE_WAIT = "queue_wait"
    RUN_SUCCEEDED = "run_duration:succeeded"
    RUN_SKIPPED = "run_duration:skipped"
    RUN_FAILED = "run_duration:failed"
    RUN_DEAD_LETTER = "run_duration:dead_letter"
    SWEEP_LATENESS = "sweep_lateness"


class Observations:
    """What one thread has measured since it last sent it."""

    def __init__(self, keys: Keys) -> None:
        """Start with nothing."""
        self._keys = keys
        self._counts: Counter[tuple[Measure, str]] = Counter()

    def add(self, measure: Measure, span: timedelta, times: int = 1) -> None:
        """Note a duration; one below zero, of clocks that disagree, counts as zero."""
        micros = max(span // _MICROSECOND, 0)
        self._counts[measure, BUCKETS[bisect_left(BOUNDS_S, micros / 1_000_000)]] += times
        self._counts[measure, SUM] += micros * times

    def add_to(self, pipe: PipelinePort) -> None:
        """Send all of it as part of the caller's commands, and start anew."""
        for (measure, field), amount in self._counts.items():
            pipe.hincrby(observed_key(self._keys, measure), field, amount)
        self._counts.clear()
