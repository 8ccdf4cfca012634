"""What follows from an action that failed: nine attempts, doubled waits, and a wish for time."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.classify import Classification
from pipeline.failing import MAX_WAIT, after_failure
from shared.model.runs import DeadLettered, Failed, Retried, RunError
from tests.runs import NOW, action

AGAIN = Classification(retryable=True, code="NET_EPIPE", message="gone")
ERROR = RunError("NET_EPIPE", "gone", 1)


def waited(found: Classification, failures: int, retries: int = 8) -> float | None:
    """Give the seconds until the next attempt, or None for a dead letter."""
    outcome = after_failure(action(retries=retries), found, failures, NOW)
    if isinstance(outcome, DeadLettered):
        return None
    assert isinstance(outcome, Retried)
    assert outcome.failures == failures + 1
    return (outcome.at - NOW).total_seconds()


def test_eight_retries_are_nine_attempts_with_doubled_waits() -> None:
    assert [waited(AGAIN, failures) for failures in range(9)] == [1, 2, 4, 8, 16, 32, 64, 128, None]


def test_waits_stop_growing_at_ten_minutes() -> None:
    assert [waited(AGAIN, failures, retries=100) for failures in (8, 9, 10, 50)] == [256, 512, 600, 600]


@pytest.mark.parametrize("failures", [0, 1, 8, 99])
def test_a_fatal_error_ends_the_run_whatever_is_left(failures: int) -> None:
    found = Classification(retryable=False, code="NET_EPIPE", message="gone")
    assert after_failure(action(), found, failures, NOW) == Failed(ERROR)


@pytest.mark.parametrize(("retries", "failures"), [(0, 0), (1, 1), (8, 8), (8, 20)])
def test_the_cap_of_an_action_ends_at_the_dead_letter_desk(retries: int, failures: int) -> None:
    assert after_failure(action(retries=retries), AGAIN, failures, NOW) == DeadLettered(ERROR)


@pytest.mark.parametrize(
    ("asked_s", "failures", "expected"),
    [(0, 0, 1), (30, 0, 30), (30, 7, 128), (600, 0, 600), (601, 0, 600), (86_400, 0, 600)],
)
def test_retry_after_raises_the_wait_up_to_ten_minutes(asked_s: int, failures: int, expected: float) -> None:
    found = Classification(retryable=True, code="X", message="", retry_after=timedelta(seconds=asked_s))
    assert waited(found, failures) == expected


def test_the_error_names_the_position_of_the_action() -> None:
    outcome = after_failure(action(3), AGAIN, 0, NOW)
    assert isinstance(outcome, Retried)
    assert outcome.error.position == 3


@given(st.integers(0, 99), st.none() | st.timedeltas(timedelta(0), timedelta(days=400)))
def test_a_wait_is_never_shorter_than_the_backoff_nor_longer_than_ten_minutes(
    failures: int, asked: timedelta | None
) -> None:
    found = Classification(retryable=True, code="X", message="", retry_after=asked)
    seconds = waited(found, failures, retries=100)
    plain = waited(AGAIN, failures, retries=100)
    assert seconds is not None
    assert plain is not None
    assert plain <= seconds <= MAX_WAIT.total_seconds()
