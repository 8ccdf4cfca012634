"""Zones and wall clock times, against vectors that other implementations computed."""

import json
import zoneinfo
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.time.wallclock import check_zone, gap_around, readings, resolve, to_local, zone_info

VECTOR_FILE = Path(__file__).parents[1] / "vectors" / "wallclock.json"
VECTORS: dict[str, Any] = json.loads(VECTOR_FILE.read_text("utf-8"))
NEW_YORK = "America/New_York"


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["id"])
def test_a_time_resolves_to_the_instant_that_others_computed(case: dict[str, str]) -> None:
    at = resolve(case["input"], case["zone"])
    assert at == datetime.fromisoformat(case["utc"])
    assert at.tzinfo is UTC
    assert to_local(at, case["zone"]) == datetime.fromisoformat(case["local"])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("europe/paris", "Europe/Paris"),
        ("utc", "UTC"),
        ("America/NewYork", "America/New_York"),
        ("AMERICA/PORT-AU-PRINCE", "America/Port-au-Prince"),
    ],
)
def test_a_zone_that_is_nearly_right_is_named(written: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean {meant}[?]$"):
        check_zone(written)


@pytest.mark.parametrize("written", ["", "Mars/Base", "x" * 10_000])
def test_of_any_other_zone_nothing_is_guessed(written: str) -> None:
    with pytest.raises(ValueError, match=r"use UTC or a name such as Europe/Paris$"):
        check_zone(written)


@pytest.mark.parametrize("case", VECTORS["zones"], ids=lambda case: repr(case["zone"])[:40])
def test_a_zone_name_is_taken_or_refused(case: dict[str, Any]) -> None:
    if case["verdict"] == "accept":
        check_zone(case["zone"])
        return
    with pytest.raises(ValueError, match="unknown time zone"):
        check_zone(case["zone"])
    with pytest.raises(ValueError, match="unknown time zone"):
        resolve("2026-10-15T10:00:00", case["zone"])


@pytest.mark.parametrize("case", VECTORS["parse"], ids=lambda case: repr(case["input"])[:40])
def test_the_shape_of_a_time_is_taken_or_refused(case: dict[str, Any]) -> None:
    if case["verdict"] == "accept":
        resolve(case["input"], "Asia/Kolkata")
        return
    with pytest.raises(ValueError, match="is not a time"):
        resolve(case["input"], "Asia/Kolkata")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00", "9999-12-31T23:59:59", "0001-01-01T00:00:00+10:00"])
def test_a_time_at_the_edge_of_the_calendar_is_refused_or_resolved(text: str) -> None:
    for zone in ("Pacific/Kiritimati", "Pacific/Niue"):
        try:
            assert resolve(text, zone).tzinfo is UTC
        except ValueError as error:
            assert "is not a time" in str(error)  # noqa: PT017 - either end is right, another error is not


def test_a_skipped_time_has_no_reading_and_its_gap_ends_at_the_change() -> None:
    skipped = datetime.fromisoformat("2026-03-08T02:30")
    assert readings(skipped, NEW_YORK) == ()
    assert gap_around(skipped, NEW_YORK) == (datetime(2026, 3, 8, 7, tzinfo=UTC), timedelta(hours=1))


def test_a_repeated_time_has_two_readings_in_order() -> None:
    repeated = datetime.fromisoformat("2026-11-01T01:30")
    assert readings(repeated, NEW_YORK) == (
        datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
        datetime(2026, 11, 1, 6, 30, tzinfo=UTC),
    )
    assert gap_around(repeated, NEW_YORK) is None


@pytest.mark.parametrize("minute", range(0, 60 * 24, 97))
def test_a_lost_day_ends_at_the_change(minute: int) -> None:
    lost = datetime.fromisoformat("2011-12-30") + timedelta(minutes=minute)
    assert gap_around(lost, "Pacific/Apia") == (datetime(2011, 12, 30, 10, tzinfo=UTC), timedelta(days=1))


def test_zones_are_those_of_the_wheel_and_the_global_search_path_is_left_alone() -> None:
    before = zoneinfo.TZPATH
    assert zone_info("America/Vancouver").utcoffset(datetime.fromisoformat("2026-12-01")) == timedelta(
        hours=-7
    )
    assert before == zoneinfo.TZPATH
