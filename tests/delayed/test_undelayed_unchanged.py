"""Automations without a delay leave what they left before there were delays: rows, log lines and events.

`tests/vectors/undelayed.json` was written by the version before, from the same morning.
"""

import json
from pathlib import Path

import pytest

from tests.delayed.undelayed import SCRIPT, apply_all, left, live_through, status_is
from tests.field.conftest import Open
from tests.field.road import NOTICE, Road

BEFORE = json.loads((Path(__file__).parents[1] / "vectors" / "undelayed.json").read_text())


@pytest.fixture
def road(open_here: Open) -> Road:
    return open_here(script=SCRIPT)


def apply_delayed(road: Road) -> None:
    """Apply automations that listen to the same events, and wait."""
    label = {"type": "ADD_LABEL", "config": {"labels": ["late"]}}
    road.automation(
        label, on={"type": "CONVERSATION_UPDATED"}, conditions=status_is("pending"), execution_delay=60
    )
    road.automation(label, on={"type": "CONVERSATION_CREATED"}, execution_delay=60)
    road.automation(NOTICE, on={"type": "MESSAGE_CREATED"}, execution_delay=60)
    road.automation(NOTICE, on={"type": "RECORD_UPDATED"}, execution_delay=60)
    road.automation(NOTICE, on="order.*", execution_delay=60)


def test_alone_they_leave_what_they_left_before(road: Road) -> None:
    apply_all(road)
    live_through(road)
    assert left(road, road.keys) == BEFORE
    assert road.room.all("SELECT id FROM pending_executions") == []


@pytest.mark.parametrize("first", ["delayed", "undelayed"])
def test_beside_delayed_ones_they_leave_the_same(road: Road, first: str) -> None:
    if first == "delayed":
        apply_delayed(road)
    others = list(road.keys)
    apply_all(road)
    keys = [key for key in road.keys if key not in others]
    if first == "undelayed":
        apply_delayed(road)
    live_through(road)
    road.sweep()
    road.rest()
    assert left(road, keys) == BEFORE
    rows = road.room.all("SELECT DISTINCT subject_type FROM pending_executions ORDER BY subject_type")
    assert [row.subject_type for row in rows] == ["conversation", "order", "record"]
