"""Durations fall into buckets, and are sent once."""

from datetime import timedelta
from typing import Any

import pytest

from shared.keys import Keys
from shared.observations import BUCKETS, SUM, Measure, Observations
from shared.redis_port import PipelinePort

KEYS = Keys("p:", "factory:events")


class Sent:
    """The commands that were sent."""

    def __init__(self) -> None:
        self.added: dict[tuple[str, str], int] = {}

    def hincrby(self, key: str, field: str, amount: int) -> None:
        self.added[key, field] = amount


def sent(observed: Observations) -> dict[tuple[str, str], int]:
    pipe: Any = Sent()
    port: PipelinePort = pipe
    observed.add_to(port)
    return pipe.added


@pytest.mark.parametrize(
    ("span_s", "bucket"),
    [
        (-3, "0.005"),
        (0, "0.005"),
        (0.005, "0.005"),
        (0.0051, "0.01"),
        (60, "60"),
        (3600, "3600"),
        (3601, "+Inf"),
    ],
)
def test_a_duration_falls_into_the_first_bucket_that_holds_it(span_s: float, bucket: str) -> None:
    observed = Observations(KEYS)
    observed.add(Measure.QUEUE_WAIT, timedelta(seconds=span_s))
    key = "p:automations:observed:queue_wait"
    assert sent(observed) == {(key, bucket): 1, (key, SUM): max(int(span_s * 1_000_000), 0)}


def test_what_is_alike_is_one_command() -> None:
    observed = Observations(KEYS)
    for _ in range(100):
        observed.add(Measure.RUN_SUCCEEDED, timedelta(milliseconds=7))
    observed.add(Measure.RUN_SUCCEEDED, timedelta(seconds=2), times=3)
    key = "p:automations:observed:run_duration:succeeded"
    assert sent(observed) == {(key, "0.01"): 100, (key, "2.5"): 3, (key, SUM): 6_700_000}


def test_what_was_sent_is_not_sent_again() -> None:
    observed = Observations(KEYS)
    observed.add(Measure.SWEEP_LATENESS, timedelta(seconds=1))
    assert sent(observed)
    assert sent(observed) == {}


def test_the_buckets_grow_and_end_with_the_rest() -> None:
    assert BUCKETS[-1] == "+Inf"
    assert sorted(BUCKETS, key=float) == list(BUCKETS)
