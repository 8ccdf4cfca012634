"""What an idle rule says, whatever was stored."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.flag_states import FlagState
from shared.model.idle_steps import IdleAction
from shared.rules.idle_rules import (
    AssignTarget,
    AssignType,
    IdleMode,
    IdlePlan,
    IdleStepRule,
    MalformedIdleRule,
    agent_plan,
    channel_plan,
    legacy_fault,
    read_steps,
)

ON, OFF = FlagState.ON, FlagState.OFF
NUDGE = {"order": 1, "action": "follow_up", "duration": 600, "message": "Still there?"}
GIVE = {"order": 2, "action": "assign", "duration": 60, "assign": {"type": "division", "division": {"id": 7}}}
CLOSE = {"order": 3, "action": "resolve", "duration": 86_400, "message": "Bye"}
LEGACY = {"action": "follow_up", "follow_up": {"duration": 300, "message": "Hello?"}}
LEGACY_PLAN = IdlePlan(
    IdleMode.LEGACY, (IdleStepRule(IdleAction.FOLLOW_UP, timedelta(seconds=300), "Hello?", None),)
)
NUDGES = IdleStepRule(IdleAction.FOLLOW_UP, timedelta(seconds=600), "Still there?", None)


def profile(**rule: Any) -> dict[str, Any]:
    return {"profile": {"idle_rule": rule}}


def test_steps_run_in_the_order_in_which_they_stand() -> None:
    plan = agent_plan(profile(steps=[NUDGE, GIVE, CLOSE]), ON)
    division = AssignTarget(AssignType.DIVISION, "7", None)
    assert plan == IdlePlan(
        IdleMode.STEPS,
        (
            NUDGES,
            IdleStepRule(IdleAction.ASSIGN, timedelta(seconds=60), None, division),
            IdleStepRule(IdleAction.RESOLVE, timedelta(days=1), "Bye", None),
        ),
    )


def test_a_fourth_step_is_ignored_and_counted() -> None:
    plan = agent_plan(profile(steps=[NUDGE, NUDGE, NUDGE, {"action": "explode"}]), ON)
    assert plan == IdlePlan(IdleMode.STEPS, (NUDGES,) * 3, ignored=1)


@pytest.mark.parametrize("steps", [[NUDGE], "nonsense", [], None, 7])
def test_with_the_flag_off_steps_change_nothing(steps: Any) -> None:
    assert (
        agent_plan(profile(**LEGACY, steps=steps), OFF) == agent_plan(profile(**LEGACY), OFF) == LEGACY_PLAN
    )
    assert agent_plan(profile(steps=steps), OFF) is None


@pytest.mark.parametrize("steps", [[], None])
def test_no_steps_are_the_legacy_keys(steps: Any) -> None:
    assert agent_plan(profile(**LEGACY, steps=steps), ON) == LEGACY_PLAN


def test_the_profile_comes_before_the_rule_beside_it() -> None:
    beside = {"idle_rule": {"action": "resolve", "resolve": {"duration": 5, "message": "x"}}}
    assert agent_plan({**beside, **profile(**LEGACY)}, OFF) == LEGACY_PLAN
    found = agent_plan({**beside, "profile": {"tone": "kind"}}, OFF)
    assert found is not None
    assert found.steps[0].action is IdleAction.RESOLVE


@pytest.mark.parametrize(
    ("rule", "action", "message"),
    [
        ({"action": "resolve", "resolve": {"duration": 9}}, IdleAction.RESOLVE, None),
        (
            {"action": "assign", "assign": {"duration": 9, "type": "auto", "message": "One moment"}},
            IdleAction.ASSIGN,
            "One moment",
        ),
    ],
)
def test_legacy_keys_are_one_step(rule: dict[str, Any], action: IdleAction, message: str | None) -> None:
    target = AssignTarget(AssignType.AUTO, None, None) if action is IdleAction.ASSIGN else None
    step = IdleStepRule(action, timedelta(seconds=9), message, target)
    assert agent_plan(profile(**rule), ON) == IdlePlan(IdleMode.LEGACY, (step,))


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({"action": "explode"}, "action"),
        ({"action": "follow_up"}, "follow_up"),
        ({"action": "follow_up", "follow_up": {"duration": 0, "message": "x"}}, "follow_up.duration"),
        ({"action": "follow_up", "follow_up": {"duration": 5}}, "follow_up.message"),
        ({"action": "assign", "assign": {"duration": 5, "type": "agent"}}, "assign"),
    ],
)
def test_legacy_keys_that_could_never_run_are_no_plan_and_told(rule: dict[str, Any], path: str) -> None:
    fault = legacy_fault(rule)
    assert fault is not None
    assert fault.path == path
    assert agent_plan(profile(**rule), ON) is None


@pytest.mark.parametrize(
    ("step", "field"),
    [
        ({**NUDGE, "action": "explode"}, "action"),
        ({**NUDGE, "action": None}, "action"),
        ({**NUDGE, "action": []}, "action"),
        *(({**NUDGE, "duration": bad}, "duration") for bad in (0, -1, 1.5, 600.0, "600", True, None, 86_401)),
        *(
            ({**NUDGE, "message": bad}, "message")
            for bad in (None, "", " \n", "\u200b", "\u00a0\u2060\ufeff", 7, "x" * 4_097)
        ),
        ({**CLOSE, "message": ""}, "message"),
        ({**GIVE, "message": 7}, "message"),
        ({**GIVE, "assign": None}, "assign"),
        ({**GIVE, "assign": {}}, "assign"),
        ({**GIVE, "assign": {"type": "nobody"}}, "assign"),
        ({**GIVE, "assign": {"type": "division"}}, "assign"),
        ({**GIVE, "assign": {"type": "division", "agent": {"id": "a"}}}, "assign"),
        ({**GIVE, "assign": {"type": "agent", "agent": {"name": "Ada"}}}, "assign"),
        ({**GIVE, "assign": {"type": "agent", "agent": {"id": True}}}, "assign"),
        ({**GIVE, "assign": {"type": "agent", "agent": {"id": "a" * 201}}}, "assign"),
    ],
)
def test_a_step_that_cannot_be_carried_out_is_named(step: Any, field: str) -> None:
    with pytest.raises(MalformedIdleRule) as caught:
        read_steps([NUDGE, step])
    assert (caught.value.index, caught.value.field) == (1, field)
    assert str(caught.value).startswith(f"steps[1].{field} ")
    with pytest.raises(MalformedIdleRule):
        agent_plan(profile(steps=[NUDGE, step]), ON)


@pytest.mark.parametrize("step", ["follow_up", 7, None, []])
def test_a_step_that_is_no_object_is_named_as_a_whole(step: Any) -> None:
    with pytest.raises(MalformedIdleRule, match=r"^steps\[1\] must be an object$") as caught:
        read_steps([NUDGE, step])
    assert (caught.value.index, caught.value.field) == (1, "steps")


def test_an_id_of_a_target_that_is_too_long_is_said_to_be_so() -> None:
    agent = {"type": "agent", "agent": {"id": "a" * 200}}
    (step,) = read_steps([{**GIVE, "assign": agent}])
    assert step.assign == AssignTarget(AssignType.AGENT, "a" * 200, None)
    told = r"^steps\[0\]\.assign target cannot be used: agent\.id must have at most 200 characters$"
    with pytest.raises(MalformedIdleRule, match=told):
        read_steps([{**GIVE, "assign": {**agent, "agent": {"id": "a" * 201}}}])


def test_a_message_with_something_to_see_is_kept_as_it_is() -> None:
    (step,) = read_steps([{**NUDGE, "message": "\u200bHi\u200d "}])
    assert step.message == "\u200bHi\u200d "


@pytest.mark.parametrize("steps", [[], [NUDGE] * 4, None, "x", {"0": NUDGE}])
def test_only_one_to_three_steps_are_taken(steps: Any) -> None:
    with pytest.raises(MalformedIdleRule, match=r"^steps must contain between 1 and 3 entries$"):
        read_steps(steps)


def test_a_channels_rule_is_one_step() -> None:
    rule = {"enabled": True, "duration": 60, "action": "follow_up", "message": "Still there?"}
    step = IdleStepRule(IdleAction.FOLLOW_UP, timedelta(seconds=60), "Still there?", None)
    assert channel_plan({"idle_rule": rule}) == IdlePlan(IdleMode.CHANNEL, (step,))


@pytest.mark.parametrize("settings", [{}, {"idle_rule": None}, {"idle_rule": {"enabled": False}}])
def test_a_channel_without_a_rule_that_is_on_has_no_plan(settings: dict[str, Any]) -> None:
    assert channel_plan(settings) is None


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([*IdleAction, *AssignType, "10" * 4_000])
    | st.just(2**70)
)
_KEYS = st.sampled_from(
    ["action", "duration", "message", "assign", "type", "division", "agent", "id", "name", "enabled", "steps"]
) | st.sampled_from([*IdleAction])
_ANYTHING = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_KEYS, inner, max_size=6),
    max_leaves=20,
)


@given(rule=_ANYTHING, state=st.sampled_from(FlagState))
def test_whatever_was_stored_nothing_but_a_malformed_rule_is_raised(rule: Any, state: FlagState) -> None:
    for document in ({"profile": {"idle_rule": rule}}, {"profile": rule, "idle_rule": rule}):
        try:
            plan = agent_plan(document, state)
        except MalformedIdleRule:
            assert state is FlagState.ON
            continue
        assert plan is None or 1 <= len(plan.steps) <= 3
    with suppress(MalformedIdleRule):
        channel_plan({"idle_rule": rule})
    with suppress(MalformedIdleRule):
        channel_plan(rule)
    with suppress(MalformedIdleRule):
        agent_plan(rule, state)
