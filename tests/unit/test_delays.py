"""Delays in words: exact, and as short as they are read well."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.automation import MAX_DELAY_MINUTES
from shared.model.delays import delay_of, show_delay, show_runs_after

UNITS = {"d": 1_440, "h": 60, "m": 1}


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        (1, "1m"),
        (59, "59m"),
        (60, "1h"),
        (90, "90m"),
        (120, "2h"),
        (150, "2h 30m"),
        (240, "4h"),
        (1_440, "1d"),
        (1_500, "25h"),
        (2_880, "2d"),
        (3_120, "2d 4h"),
        (3_121, "2d 4h 1m"),
        (43_200, "30d"),
    ],
)
def test_a_delay_is_written_in_days_hours_and_minutes(minutes: int, text: str) -> None:
    assert show_delay(minutes) == text


@given(st.integers(1, MAX_DELAY_MINUTES))
def test_what_is_written_is_exact(minutes: int) -> None:
    parts = re.findall(r"(\d+)([dhm])", show_delay(minutes))
    assert sum(int(number) * UNITS[unit] for number, unit in parts) == minutes


def test_what_does_not_wait_has_no_badge() -> None:
    assert show_runs_after(delay_of({"execution_delay": None})) is None
    assert show_runs_after(delay_of({})) is None
    assert show_runs_after(delay_of({"execution_delay": 240})) == "runs after 4h"
