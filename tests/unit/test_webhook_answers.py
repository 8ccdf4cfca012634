"""What an answer means for the run."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.webhook_answers import check_status, parse_retry_after
from shared.errors import FatalError, RetryableError

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_done(status: int) -> None:
    check_status(status, "POST http://h/", None)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 501, 502, 503, 504, 599])
def test_what_may_pass_is_retried_after_the_wait_asked_for(status: int) -> None:
    with pytest.raises(RetryableError) as caught:
        check_status(status, "POST http://h/", timedelta(seconds=9))
    assert caught.value.code == "WEBHOOK_HTTP_RETRIABLE"
    assert str(status) in caught.value.message
    assert caught.value.retry_after == timedelta(seconds=9)


@pytest.mark.parametrize(
    "status", [100, 101, 300, 301, 302, 303, 304, 305, 307, 308, 400, 401, 404, 410, 422, 499]
)
def test_everything_else_is_fatal(status: int) -> None:
    with pytest.raises(FatalError) as caught:
        check_status(status, "POST http://h/", timedelta(seconds=9))
    assert caught.value.code == "WEBHOOK_HTTP_ERROR"
    assert str(status) in caught.value.message


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("600", 600),
        ("601", 600),
        ("999999999", 600),
        ("9" * 5000, 600),
        ("-1", 0),
        ("Mon, 30 Nov 2026 12:01:30 GMT", 90),
        ("Mon, 30 Nov 2026 13:01:30 +0100", 90),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 600),
    ],
)
def test_a_wait_in_seconds_or_as_a_date_is_clamped(value: str, seconds: int) -> None:
    assert parse_retry_after(value, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", [None, "", "soon", "1.5", "1e3", "Mon, 99 Foo", "\u0661"])
def test_an_unreadable_wait_is_none(value: str | None) -> None:
    assert parse_retry_after(value, NOW) is None


@given(st.text())
def test_no_header_raises(value: str) -> None:
    wait = parse_retry_after(value, NOW)
    assert wait is None or timedelta(0) <= wait <= timedelta(seconds=600)
