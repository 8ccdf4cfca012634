"""The wait between two attempts doubles from one second and stops growing at ten minutes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.rules.backoff import MAX_BACKOFF_S, run_backoff_seconds


def test_the_waits_of_a_run_that_uses_all_its_retries() -> None:
    assert [run_backoff_seconds(n) for n in range(1, 9)] == [1, 2, 4, 8, 16, 32, 64, 128]


@pytest.mark.parametrize(("n", "seconds"), [(10, 512), (11, 600), (12, 600), (10_000, 600), (10**30, 600)])
def test_the_cap(n: int, seconds: int) -> None:
    assert run_backoff_seconds(n) == seconds


@pytest.mark.parametrize("n", [0, -1, -(10**30)])
def test_failures_are_counted_from_one(n: int) -> None:
    with pytest.raises(ValueError, match="counted from 1"):
        run_backoff_seconds(n)


@settings(deadline=None)
@given(n=st.integers(1, 10_000))
def test_it_never_shrinks_nor_passes_its_cap(n: int) -> None:
    assert 1 <= run_backoff_seconds(n) <= run_backoff_seconds(n + 1) <= MAX_BACKOFF_S
