"""What stops a run before its first action, and in which order."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.guards import guard
from pipeline.plans import GONE, Plan
from shared.db.automations import AutomationState
from shared.model.automation import MAX_ACTIONS
from shared.model.events import Context
from shared.model.moves import SkipReason
from shared.model.runs import ClaimedRun, Failed, Succeeded
from shared.model.statuses import AutomationStatus
from tests.runs import HOOK, LOCAL, claimed, done, event, plan

DEPTH_MAX = 5
PAUSED = AutomationState(1, AutomationStatus.PAUSED, is_deleted=False)
OWN = Context("a1", "r0", "r0", 1)


def verdict(run: ClaimedRun, planned: Plan, context: Context | None = None) -> str | None:
    """Say how the guards end a run, in a word; None when it may act."""
    match guard(run, planned, event(context), DEPTH_MAX):
        case None:
            return None
        case Succeeded(skipped=reason):
            return reason
        case Failed(error=error):
            return error.code


def test_nothing_stops_an_ordinary_run() -> None:
    assert verdict(claimed(), plan(HOOK)) is None


@pytest.mark.parametrize(
    ("planned", "code"),
    [
        (plan(HOOK, state=GONE), "AUTOMATION_DELETED"),
        (plan(HOOK, state=PAUSED), SkipReason.INACTIVE),
        (plan(HOOK, fault="actions: gone"), "DEFINITION_INVALID"),
        (plan(), "ACTION_COUNT"),
        (plan(*[LOCAL] * (MAX_ACTIONS + 1)), "ACTION_COUNT"),
        (plan(*[LOCAL] * MAX_ACTIONS), None),
    ],
)
def test_the_plan_may_stop_a_run(planned: Plan, code: str | None) -> None:
    assert verdict(claimed(), planned) == code


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, SkipReason.INACTIVE),
        ({"retry_count": 1}, None),
        ({"finished": (done(1),)}, None),
    ],
)
def test_a_pause_skips_only_what_has_not_begun(keys: dict[str, Any], expected: str | None) -> None:
    assert verdict(claimed(**keys), plan(HOOK, state=PAUSED)) == expected


@pytest.mark.parametrize(
    ("depth", "expected"), [(0, None), (4, None), (5, "depth_limit"), (9, "depth_limit")]
)
def test_a_chain_ends_at_the_depth_limit(depth: int, expected: str | None) -> None:
    assert verdict(claimed(depth=depth), plan(HOOK)) == expected


def test_an_automation_does_not_start_itself_but_may_start_another() -> None:
    assert verdict(claimed(depth=1), plan(HOOK), OWN) is SkipReason.SELF_TRIGGER
    assert verdict(claimed(depth=1), plan(HOOK), replace(OWN, automation_id="a2")) is None


def test_the_guards_are_asked_in_order() -> None:
    worst = claimed(depth=9, stop_reason="CANCELLED")
    assert verdict(worst, plan(state=GONE, fault="x"), OWN) == "AUTOMATION_DELETED"
    assert verdict(worst, plan(state=PAUSED, fault="x"), OWN) == "CANCELLED"
    calm = replace(worst, stop_reason=None)
    assert verdict(calm, plan(state=PAUSED, fault="x"), OWN) == "inactive"
    assert verdict(calm, plan(fault="x"), OWN) == "self_trigger"
    assert verdict(calm, plan(fault="x")) == "depth_limit"
    assert verdict(claimed(), plan(fault="x")) == "DEFINITION_INVALID"


def test_a_stop_asked_for_in_an_earlier_attempt_comes_before_the_next_action() -> None:
    assert verdict(claimed(stop_reason="CANCELLED", retry_count=1), plan(HOOK)) == "CANCELLED"


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ((HOOK, LOCAL, HOOK), None),
        ((HOOK, LOCAL), None),
        ((HOOK, HOOK), "DEFINITION_CHANGED"),
        ((HOOK,), "DEFINITION_CHANGED"),
        ((LOCAL, LOCAL), "DEFINITION_CHANGED"),
    ],
)
def test_only_a_finished_action_that_changed_stops_a_resumed_run(
    now: tuple[str, ...], expected: str | None
) -> None:
    run = claimed(done(1, HOOK), done(2, LOCAL))
    assert verdict(run, plan(*now)) == expected
