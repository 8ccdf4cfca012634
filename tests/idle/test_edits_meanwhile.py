"""What changes between a step's sweep and its act: what was taken back is not said."""

from collections.abc import Iterator
from typing import Any

import pytest

from shared.services.runs import ReplayFrom, replay
from tests.idle.road import THREE, Road, after, open_road
from tests.idle.test_s02_s03_s04_firing import LEGACY, OFF, give
from tests.idle_stage import bot
from tests.people import CALLER
from timers.alerting import Teller

CHANGED = [(0, "stopped", "config_changed")]


@pytest.fixture
def road(database_url: str, redis_url: str) -> Iterator[Road]:
    with open_road(database_url, redis_url) as road:
        yield road


def turn_off(road: Road) -> None:
    road.idle.change(OFF)


def edit_text(road: Road) -> None:
    give(road, {**THREE[0], "message": "Something else."})


def replace_by_a_resolve(road: Road) -> None:
    give(road, THREE[2])


EDITS = [turn_off, edit_text, replace_by_a_resolve]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_after_the_sweep_and_before_the_act_stops_the_step(road: Road, edit: Any) -> None:
    give(road, steps=list(THREE), **LEGACY)
    road.begin()
    road.idle.sweep_at(after(10))
    edit(road)
    road.drive()
    assert (road.said(), road.steps()) == ([], CHANGED)
    assert road.runs()[0].skip_reason == "config_changed"


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_between_two_attempts_stops_the_step(road: Road, edit: Any) -> None:
    give(road, steps=list(THREE), **LEGACY)
    road.failing("SEND_MESSAGE", 1)
    road.begin()
    road.at(10)
    edit(road)
    road.at(11)
    assert (road.said(), road.steps()) == ([], CHANGED)


def test_an_edit_while_the_step_acts_stops_it_before_it_is_entered(road: Road) -> None:
    road.failing("SEND_MESSAGE", 0).before = lambda: edit_text(road)
    road.begin()
    road.at(10)
    assert (road.said(), road.steps()) == ([], CHANGED)


def test_an_edit_of_another_step_changes_nothing_for_this_one(road: Road) -> None:
    road.begin()
    road.idle.sweep_at(after(10))
    give(road, THREE[0], {**THREE[1], "message": "Edited."}, THREE[2])
    road.drive()
    road.at(20)
    assert [content for content, _ in road.said()] == [THREE[0]["message"], "Edited."]


def test_a_failed_step_that_a_newer_answer_supersedes_says_so_when_it_is_replayed(road: Road) -> None:
    road.failing("SEND_MESSAGE", 3)
    road.begin()
    for minutes in (10, 11, 12):
        road.at(minutes)
    road.idle.tell(bot(after(12.5), "m2"))
    (run,) = road.runs()
    replay(road.idle.backends, CALLER, [run.id], ReplayFrom.FAILED_ACTION)
    road.at(13)
    assert road.steps()[0] == (0, "superseded", "superseded")


def test_a_dead_letter_of_a_step_is_told_of_like_any_other(road: Road) -> None:
    road.failing("SEND_MESSAGE", 3)
    road.begin()
    for minutes in (10, 11, 12):
        road.at(minutes)
    Teller(road.settings, road.idle.backends).tick()
    assert road.rows("SELECT id FROM alerts") == []
    (group,) = road.rows("SELECT title, automation_id, count FROM alert_groups")
    assert (group.title, group.automation_id, group.count) == (
        "Idle sequence of agent Agent nora, step 1 dead-lettered",
        None,
        1,
    )
