"""A matcher that dies anywhere between reading an event and acknowledging it loses none and doubles none."""

import signal

import pytest

from shared.faults import FaultPoint
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.system.deployment import KEYS

EVENTS = 20
MATCHER_POINTS = (
    FaultPoint.MATCH_AFTER_READ,
    FaultPoint.MATCH_AFTER_DEDUPE,
    FaultPoint.MATCH_BEFORE_COMMIT,
    FaultPoint.MATCH_AFTER_COMMIT,
    FaultPoint.ENQUEUE_BEFORE,
    FaultPoint.MATCH_BEFORE_ACK,
    FaultPoint.ENQUEUE_AFTER,
)


@pytest.mark.parametrize("point", MATCHER_POINTS)
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
