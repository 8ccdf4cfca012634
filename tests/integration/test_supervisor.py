"""The supervisor of one `up`: how long it waits before it starts again what ended."""

import re
from datetime import timedelta
from functools import partial

import pytest

from knockon.supervisor import Spec, Supervisor
from shared.time.clock import ManualClock
from tests.people import NOW
from tests.waiting import poll


class Ending(Spec):
    """A process that ends at once."""

    def command(self) -> list[str]:
        return ["false"]


@pytest.mark.parametrize(
    ("room", "waits"),
    [
        ("timers", [1, 2, 4, 5, 5, 5, 5]),
        ("api", [1, 2, 4, 5, 5, 5, 5]),
        ("worker", [1, 2, 4, 8, 16, 30, 30]),
    ],
)
def test_each_end_in_a_row_is_waited_for_longer_up_to_a_limit(room: str, waits: list[int]) -> None:
    said: list[str] = []
    clock = ManualClock(NOW)
    supervisor = Supervisor([Ending("it", room)], {}, clock, lambda _, line: said.append(line))

    def ended(times: int) -> bool:
        supervisor.tend()
        return len(said) == times

    for number, wait_s in enumerate(waits, start=1):
        poll(partial(ended, number))
        clock.advance(timedelta(seconds=wait_s))
    assert [int(wait) for line in said for wait in re.findall(r"again in (\d+) s", line)] == waits
