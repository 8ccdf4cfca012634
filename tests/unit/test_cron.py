"""Cron: the grammar, the interval rule and the fires, against vectors and against croniter's own reading."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.time.cron import cron_check, next_fires

VECTOR_FILE = Path(__file__).parents[1] / "vectors" / "cron.json"
VECTORS: dict[str, Any] = json.loads(VECTOR_FILE.read_text("utf-8"))
START = datetime(2026, 10, 13, 10, 7, 30, tzinfo=UTC)
ZONES = ["UTC", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo", "Asia/Kolkata"]


def field(low: int, high: int) -> st.SearchStrategy[str]:
    """Draw one field: a star, a step, a value, a range or a short list."""
    value = st.integers(low, high)
    span = st.tuples(value, value).filter(lambda ends: ends[0] < ends[1])
    part = st.one_of(value.map(str), span.map(lambda ends: f"{ends[0]}-{ends[1]}"))
    step = st.integers(1, high).map(lambda by: f"*/{by}")
    return st.one_of(st.just("*"), step, st.lists(part, min_size=1, max_size=3).map(",".join))


expressions = st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6)).map(" ".join)


@pytest.mark.parametrize("case", VECTORS["fires"], ids=lambda case: case["id"])
def test_the_fires_are_those_that_others_computed(case: dict[str, Any]) -> None:
    expected = [datetime.fromisoformat(text) for text in case["next"]]
    after = datetime.fromisoformat(case["after"])
    assert next_fires(case["expr"], case["zone"], after, len(expected)) == expected
    assert next_fires(case["expr"], case["zone"], after, 1) == expected[:1]


@pytest.mark.parametrize("case", VECTORS["fires"], ids=lambda case: case["id"])
def test_asking_one_by_one_gives_the_same_fires_as_asking_for_all(case: dict[str, Any]) -> None:
    at = datetime.fromisoformat(case["after"])
    for text in case["next"]:
        [at] = next_fires(case["expr"], case["zone"], at, 1)
        assert at == datetime.fromisoformat(text)


@pytest.mark.parametrize("case", VECTORS["syntax"] + VECTORS["interval"], ids=lambda case: case["id"])
def test_an_expression_is_taken_or_refused(case: dict[str, Any]) -> None:
    if case["verdict"] == "accept":
        cron_check(case["expr"])
        return
    with pytest.raises(ValueError, match=r"\w+"):
        cron_check(case["expr"])


@pytest.mark.parametrize(
    "expr",
    [
        "",
        "* * * *",
        "@reboot",
        "@yearly @daily",
        "0 9\n* * *",
        "? * * * *",
        "* ? * * *",
        "*,5 * * * *",
        "0 0 * * 5-0",
        "0 0 * * MON/8",
        "0 0 1#1 * *",
        ",".join(map(str, range(60))) * 3 + " * * * *",
        None,
        5,
    ],
)
def test_what_is_not_in_the_grammar_is_refused(expr: Any) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        cron_check(expr)


@pytest.mark.parametrize(
    ("expr", "days"),
    [
        ("0 0 15 * 1#2", [9, 15]),
        ("0 0 * * 1#2,5", [6, 9, 13, 20, 27]),
        ("0 0 15,L * *", [15, 30]),
        ("0 0 L * 1", [2, 9, 16, 23, 30]),
        ("0 0 */2 * 1", [9, 23]),
        ("0 0 1-7 * */7", [1]),
        ("0 0 * * 1/3", [2, 5, 9, 12, 16, 19, 23, 26, 30]),
        ("0 0 1-7 * */2", [1, 3, 5, 7]),
    ],
)
def test_day_fields_combine_by_the_star_rule(expr: str, days: list[int]) -> None:
    fires = next_fires(expr, "UTC", datetime(2026, 10, 31, 12, tzinfo=UTC), 10)
    assert [at.day for at in fires if at.month == 11] == days


def test_a_leap_sunday_is_found_though_it_comes_every_28_to_40_years() -> None:
    cron_check("0 0 29 2 */7")
    fires = next_fires("0 0 29 2 */7", "UTC", START, 4)
    assert [at.year for at in fires] == [2032, 2060, 2088, 2128]


@settings(deadline=None, max_examples=60)
@given(expr=expressions, hours=st.integers(0, 20_000))
def test_in_utc_the_fires_are_those_of_croniter(expr: str, hours: int) -> None:
    after = START + timedelta(hours=hours)
    theirs = croniter(expr, after, implement_cron_bug=True)
    try:
        wanted = [theirs.get_next(datetime) for _ in range(3)]
    except ValueError:
        return
    assert next_fires(expr, "UTC", after, 3) == wanted


@settings(deadline=None, max_examples=60)
@given(expr=expressions, zone=st.sampled_from(ZONES), hours=st.integers(0, 10_000))
def test_fires_come_after_and_in_order_and_a_minute_apart(expr: str, zone: str, hours: int) -> None:
    after = START + timedelta(hours=hours)
    fires = next_fires(expr, zone, after, 5)
    assert all(later - earlier >= timedelta(minutes=1) for earlier, later in pairwise(fires))
    assert all(at > after for at in fires)


def test_a_naive_start_and_an_unknown_zone_are_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        next_fires("* * * * *", "UTC", datetime.fromisoformat("2026-01-01"), 1)
    with pytest.raises(ValueError, match="unknown time zone"):
        next_fires("* * * * *", "EST", START, 1)


def test_the_calendar_ends_without_an_error() -> None:
    assert next_fires("0 0 29 2 *", "UTC", datetime(9996, 6, 1, tzinfo=UTC), 2) == []
