"""A matcher that dies anywhere between reading an event and acknowledging it loses none and doubles none."""

import signal

import pytest

from shared.faults import FaultPoint
from tests.system import points
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.system.deployment import KEYS

EVENTS = 20


@pytest.mark.parametrize("point", points.MATCHER)
def test_no_event_is_lost_or_doubled_when_a_matcher_is_killed(opened: Opener, point: FaultPoint) -> None:
    site = opened()
    automation_id = site.automation(site.hook("/one"))
    doomed = site.fleet.start("matcher", fault=f"{point}:kill9")
    drafts = site.publish(EVENTS)
    assert doomed.wait() == -signal.SIGKILL
    if point is FaultPoint.MATCH_AFTER_DEDUPE:
        assert site.backends.redis.exists(KEYS.dedupe(automation_id, f"id:{drafts[0].id}"))
        assert site.runs() == []
    site.fleet.start("worker")
    site.fleet.start("matcher")
    site.await_ended(EVENTS)
    assert site.statuses() == ["SUCCEEDED"] * EVENTS
    check_account(site)
