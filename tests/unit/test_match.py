"""Which automations an event starts, and the first check that says no."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matcher.match import Match, Skip, match
from shared.model.automation import Automation
from shared.model.events import Event
from shared.model.triggers import DATABASE_TRIGGERS, EVENTLESS_TRIGGERS, TriggerType
from shared.rules.triggering import FED_BY, Mismatch
from tests.matching import ON_ORDERS, make_automation, make_event

PLAIN_TYPES = sorted({fed for types in FED_BY.values() for fed in types} - {TriggerType.PROPERTY_CHANGED})


def reason(event: Event, automation: Automation) -> Mismatch | None:
    match match(event, automation):
        case Match(found_event, found_automation):
            assert (found_event, found_automation) == (event, automation)
            return None
        case Skip(automation_id, why):
            assert automation_id == automation.id
            return why


def property_event(*changed: Any, **payload: Any) -> Event:
    return make_event("record.updated", {"changedProperties": list(changed), **payload})


def on_property(*names: str, **given: Any) -> Automation:
    return make_automation({"type": "PROPERTY_CHANGED", "config": {"properties": list(names)}}, **given)


def message(**fields: Any) -> Event:
    made = {"id": "m1", "direction": "incoming", "senderType": "contact", **fields}
    return make_event("message.created", {"conversation": {"id": "c1"}, "message": made})


@pytest.mark.parametrize("fed", PLAIN_TYPES)
def test_a_trigger_is_fed_by_its_event_type_alone(fed: TriggerType) -> None:
    automation = make_automation({"type": fed})
    for type_, feeds in FED_BY.items():
        assert reason(make_event(type_), automation) == (None if fed in feeds else Mismatch.OTHER_TYPE)


def test_an_updated_record_feeds_both_of_its_triggers() -> None:
    event = property_event("status")
    assert reason(event, make_automation({"type": "RECORD_UPDATED"})) is None
    assert reason(event, on_property("status")) is None


@pytest.mark.parametrize("type_", sorted(EVENTLESS_TRIGGERS))
def test_no_event_feeds_a_schedule_or_a_click(type_: TriggerType) -> None:
    config = {"cron": "0 9 * * *"} if type_ is TriggerType.SCHEDULE else {}
    automation = make_automation({"type": type_, "config": config})
    assert all(reason(make_event(name), automation) is Mismatch.OTHER_TYPE for name in FED_BY)


@pytest.mark.parametrize(
    ("pattern", "type_", "is_covered"),
    [
        ("order.placed", "order.placed", True),
        ("order.placed", "order.placed_twice", False),
        ("order.*", "order.placed", True),
        ("order.*", "orders.placed", False),
        ("ord*", "order.placed", True),
        ("*", "anything.at_all", True),
        ("automation.executed", "automation.executed", True),
        ("record.*", "record.updated", True),
    ],
)
def test_an_event_type_may_end_in_a_star(pattern: str, type_: str, is_covered: bool) -> None:
    automation = make_automation({"type": "EVENT", "config": {"eventType": pattern}})
    assert (reason(make_event(type_), automation) is None) is is_covered


def test_another_workspace_never_matches() -> None:
    event = make_event("record.created", {"databaseId": "d1"}, workspace_id="w2")
    automation = make_automation({"type": "RECORD_CREATED", "config": {"databaseId": "d1"}})
    assert reason(event, automation) is Mismatch.OTHER_WORKSPACE


@pytest.mark.parametrize("status", ["DRAFT", "PAUSED", "ARCHIVED"])
def test_only_an_active_automation_matches(status: str) -> None:
    assert reason(make_event(), make_automation(status=status)) is Mismatch.INACTIVE


def test_one_that_never_was_active_does_not_match() -> None:
    assert reason(make_event(), make_automation(activated_ms=None)) is Mismatch.INACTIVE


@pytest.mark.parametrize(("entry_id", "is_older"), [("999-7", True), ("1000-0", False), ("1001-0", False)])
def test_an_event_older_than_the_activation_does_not_match(entry_id: str, is_older: bool) -> None:
    found = reason(make_event(entry_id=entry_id), make_automation(activated_ms=1000))
    assert found is (Mismatch.BEFORE_ACTIVATION if is_older else None)


@pytest.mark.parametrize("fed", sorted(DATABASE_TRIGGERS))
@pytest.mark.parametrize("where", ["trigger", "automation"])
def test_a_database_trigger_keeps_to_its_database(fed: TriggerType, where: str) -> None:
    config: dict[str, Any] = {"properties": ["*"]} if fed is TriggerType.PROPERTY_CHANGED else {}
    scope = {"databaseId": "d1"}
    trigger = {"type": fed, "config": {**config, **(scope if where == "trigger" else {})}}
    automation = make_automation(trigger, **(scope if where == "automation" else {}))
    type_ = next(name for name, feeds in FED_BY.items() if fed in feeds)
    changed = {"changedProperties": ["p"]}
    assert reason(make_event(type_, {"databaseId": "d1", **changed}), automation) is None
    assert reason(make_event(type_, {"databaseId": "d2", **changed}), automation) is Mismatch.FILTER_MISMATCH
    assert reason(make_event(type_, changed), automation) is Mismatch.FILTER_MISMATCH


def test_the_automations_own_database_comes_before_its_triggers() -> None:
    trigger = {"type": "RECORD_CREATED", "config": {"databaseId": "d1"}}
    automation = make_automation(trigger, databaseId="d2")
    assert reason(make_event("record.created", {"databaseId": "d2"}), automation) is None
    assert reason(make_event("record.created", {"databaseId": "d1"}), automation) is Mismatch.FILTER_MISMATCH


def test_a_database_that_is_a_number_counts_as_its_digits() -> None:
    automation = make_automation({"type": "RECORD_CREATED", "config": {"databaseId": "5"}})
    assert reason(make_event("record.created", {"databaseId": 5}), automation) is None


@pytest.mark.parametrize(
    ("watched", "changed", "is_match"),
    [
        (["done"], [], False),
        (["done"], ["note"], False),
        (["done"], ["done"], True),
        (["done", "x"], ["y", "x"], True),
        (["*"], [], False),
        (["*"], ["note"], True),
        (["*"], [7], False),
    ],
)
def test_a_property_trigger_looks_at_what_changed(
    watched: list[str], changed: list[Any], is_match: bool
) -> None:
    found = reason(property_event(*changed), on_property(*watched))
    assert found is (None if is_match else Mismatch.FILTER_MISMATCH)


def test_an_entry_that_names_no_changes_triggers_no_property() -> None:
    assert reason(make_event("record.updated"), on_property("*")) is Mismatch.FILTER_MISMATCH


@pytest.mark.parametrize(
    ("mark", "is_machine"),
    [
        ({}, False),
        ({"autoSubmitted": "auto-replied"}, True),
        ({"autoSubmitted": True}, True),
        ({"autoSubmitted": "no"}, False),
        ({"autoSubmitted": False}, False),
        ({"autoSubmitted": None}, False),
        ({"precedence": "Bulk"}, True),
        ({"precedence": "first-class"}, False),
        ({"returnPath": "<>"}, True),
        ({"returnPath": "<anna@example.test>"}, False),
        ({"ownAddress": True}, True),
        ({"senderType": "automation"}, True),
        ({"senderType": "automation", "direction": "outgoing"}, False),
        ({"autoSubmitted": "auto-replied", "direction": "outgoing"}, False),
    ],
)
def test_a_machine_made_incoming_message_starts_nothing(mark: dict[str, Any], is_machine: bool) -> None:
    wanted = Mismatch.FILTER_MISMATCH if is_machine else None
    assert reason(message(**mark), make_automation({"type": "MESSAGE_CREATED"})) is wanted
    any_message = make_automation({"type": "EVENT", "config": {"eventType": "message.*"}})
    assert reason(message(**mark), any_message) is wanted


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TRIGGERS = st.one_of(
    st.sampled_from(PLAIN_TYPES).map(lambda fed: {"type": fed}),
    st.just({"type": "PROPERTY_CHANGED", "config": {"properties": ["*"]}}),
    st.just(ON_ORDERS),
)


@given(
    st.sampled_from([*FED_BY, "order.placed"]),
    st.dictionaries(
        st.sampled_from(["databaseId", "changedProperties", "message", "properties"]), JSON, max_size=4
    ),
    TRIGGERS,
)
def test_no_payload_upsets_the_matcher(type_: str, payload: dict[str, Any], trigger: Any) -> None:
    assert isinstance(match(make_event(type_, payload), make_automation(trigger)), Match | Skip)
