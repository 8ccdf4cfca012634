"""What the command tells of schedules, on both databases."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from knockon.cli.app import make_app
from tests.people import CALLER
from tests.timekeeping import Timekeeper, open_timekeeper

Knockon = Callable[..., Result]


@pytest.fixture
def keeper(database_url: str, redis_url: str) -> Iterator[Timekeeper]:
    with open_timekeeper(database_url, redis_url, "2026-03-01T12:00:00") as opened:
        yield opened


@pytest.fixture
def knockon(database_url: str, redis_url: str, keeper: Timekeeper) -> Knockon:
    """Run a command against this test's servers; it must end with `code`."""
    servers = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "KNOCKON_WORKSPACE": CALLER.workspace_id}

    def run(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(make_app(), arguments, env=servers, input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run


def asked(knockon: Knockon, *arguments: str) -> Any:
    return orjson.loads(knockon(*arguments, "-o", "json").stdout)


def test_the_next_fires_are_told_in_utc_and_as_the_clocks_of_the_zone_show(
    knockon: Knockon, keeper: Timekeeper
) -> None:
    keeper.apply("30 7 * * *", "Asia/Tokyo", status="DRAFT")
    told = asked(knockon, "automations", "next", "tick", "--count", "3")
    assert (told["key"], told["status"], told["timezone"]) == ("tick", "DRAFT", "Asia/Tokyo")
    assert told["last_slot"] is None
    assert len(told["fires"]) == 3
    for fire in told["fires"]:
        assert fire["at"].endswith("T22:30:00Z")
        assert fire["local"].endswith("T07:30:00+09:00")
        assert fire["remark"] is None
    shown = knockon("automations", "next", "tick").stdout
    assert shown.count("22:30:00.000Z") == shown.count("07:30:00 JST") == 5


def test_a_slot_that_is_due_is_the_first_and_the_last_one_is_told(
    knockon: Knockon, keeper: Timekeeper
) -> None:
    keeper.apply("0 0 1 1 *")
    keeper.sweep_at("2027-01-01T00:00:10")
    keeper.change("UPDATE schedules SET next_fire_at = '2026-01-01T00:00:00+00:00'")
    told = asked(knockon, "automations", "next", "tick")
    assert told["last_slot"] == "2027-01-01T00:00:00Z"
    assert told["fires"][0]["at"] == "2026-01-01T00:00:00Z"
    assert told["fires"][0]["remark"] == "due, and not fired yet"
    assert len(told["fires"]) == 5
    assert "last slot 2027-01-01 00:00:00.000Z" in knockon("automations", "next", "tick").stdout


def test_only_what_the_clock_starts_has_next_fires(knockon: Knockon, keeper: Timekeeper) -> None:
    keeper.apply(trigger={"type": "MANUAL"})
    assert "is started by MANUAL, not by the clock" in knockon("automations", "next", "tick", code=1).stderr
    assert "there is no automation" in knockon("automations", "next", "other", code=1).stderr


def test_showing_an_automation_tells_its_next_fire(knockon: Knockon, keeper: Timekeeper) -> None:
    keeper.apply("0 9 * * *")
    assert asked(knockon, "automations", "show", "tick")["next_fire_at"] == "2026-03-02T09:00:00Z"
    assert "next fire 2026-03-02 09:00:00.000Z" in knockon("automations", "show", "tick").stdout
    keeper.apply("0 9 * * *", status="PAUSED")
    assert asked(knockon, "automations", "show", "tick")["next_fire_at"] is None
    assert "next fire" not in knockon("automations", "show", "tick").stdout


def test_applying_a_schedule_needs_no_warning_any_more(knockon: Knockon) -> None:
    text = (
        "key: tick\nname: Tick\ntrigger: {type: SCHEDULE, config: {cron: '0 9 * * *'}}\n"
        "actions: [{type: CREATE_NOTIFICATION, config: {title: Hello}}]\n"
    )
    result = knockon("apply", "-f", "-", stdin=text)
    assert result.stderr == ""
    assert asked(knockon, "automations", "show", "tick")["next_fire_at"] is not None


def test_the_doctor_names_active_schedules_without_a_next_fire(knockon: Knockon, keeper: Timekeeper) -> None:
    keeper.apply("0 0 1 1 *", status="DRAFT", key="draft")
    for number in range(6):
        keeper.apply("0 0 1 1 *", key=f"yearly-{number}")
    keeper.change("UPDATE schedules SET next_fire_at = '2100-01-01T00:00:00+00:00'")
    assert "every active one has a next fire" in knockon("doctor").stdout
    keeper.change("UPDATE schedules SET next_fire_at = NULL")
    shown = knockon("doctor").stdout
    assert "yearly-0 (w1)" in shown
    assert "yearly-4 (w1) and more" in shown
    assert "draft" not in shown
