"""What a preview says of fires that a clock change moved or repeated."""

from datetime import datetime

import pytest

from shared.time.cron import next_fires
from shared.time.cron_remarks import remark_on

NEW_YORK = "America/New_York"


def remarks(cron: str, zone: str, after: str, count: int) -> list[str | None]:
    fires = next_fires(cron, zone, datetime.fromisoformat(after), count)
    return [remark_on(cron, zone, fire) for fire in fires]


def test_a_time_that_the_clocks_skip_is_named() -> None:
    found = remarks("30 2 * * *", "Europe/Paris", "2026-03-28T00:00:00Z", 3)
    assert found == [None, "02:30 does not exist on 2026-03-29", None]


def test_of_several_skipped_times_the_first_is_named() -> None:
    assert remarks("15,45 2 * * *", NEW_YORK, "2026-03-08T05:00:00Z", 1) == [
        "02:15 does not exist on 2026-03-08"
    ]


@pytest.mark.parametrize("cron", ["*/30 * * * *", "0 3 * * *", "0 * * * *"])
def test_a_fire_of_its_own_at_the_end_of_the_gap_is_nothing_special(cron: str) -> None:
    assert next_fires(cron, NEW_YORK, datetime.fromisoformat("2026-03-08T06:59:00Z"), 1) == [
        datetime.fromisoformat("2026-03-08T07:00:00Z")
    ]
    assert remarks(cron, NEW_YORK, "2026-03-08T06:59:00Z", 1) == [None]


def test_a_time_that_comes_twice_says_which_one_it_is() -> None:
    assert remarks("30 1 * * *", NEW_YORK, "2026-11-01T00:00:00Z", 1) == [
        "01:30 comes twice on 2026-11-01, this is the first time"
    ]
    assert remarks("30 * * * *", NEW_YORK, "2026-11-01T05:00:00Z", 3) == [
        "01:30 comes twice on 2026-11-01, this is the first time",
        "01:30 comes twice on 2026-11-01, this is the second time",
        None,
    ]


def test_without_a_clock_change_there_is_nothing_to_say() -> None:
    assert remarks("0 9 * * *", "Asia/Tokyo", "2026-03-01T00:00:00Z", 5) == [None] * 5
