"""Which events arm an automation that waits."""

from typing import Any

import pytest

from shared.model.automation import Automation
from shared.model.triggers import TriggerType
from shared.rules.triggering import FED_BY, Mismatch, first_mismatch, is_delayed, named_by
from tests.matching import make_automation, make_event


def on(type_: str, **config: Any) -> Automation:
    return make_automation({"type": type_, "config": config}, execution_delay=60)


@pytest.mark.parametrize(
    ("automation", "type_", "is_named"),
    [
        (on("RECORD_UPDATED"), "record.created", True),
        (on("RECORD_UPDATED"), "record.updated", True),
        (on("RECORD_UPDATED"), "record.deleted", False),
        (on("RECORD_CREATED"), "record.updated", False),
        (on("CONVERSATION_UPDATED"), "conversation.created", True),
        (on("CONVERSATION_UPDATED"), "conversation.opened", False),
        (on("CONVERSATION_OPENED"), "conversation.created", False),
        (on("CONTACT_UPDATED"), "contact.created", True),
        (on("CONTACT_UPDATED"), "order.created", False),
        (on("PROPERTY_CHANGED", properties=["*"]), "record.created", False),
        (on("EVENT", eventType="order.updated"), "order.created", True),
        (on("EVENT", eventType="order.line.updated"), "order.line.created", True),
        (on("EVENT", eventType="order.upd*"), "order.created", True),
        (on("EVENT", eventType="order.updated"), "order.recreated", False),
        (on("EVENT", eventType="order.placed"), "order.created", False),
    ],
)
def test_what_is_made_arms_what_listens_to_its_updates(
    automation: Automation, type_: str, is_named: bool
) -> None:
    event = make_event(type_, {"changedProperties": ["a"]})
    assert named_by(event, automation) == (None if is_named else Mismatch.OTHER_TYPE)


@pytest.mark.parametrize("fed", sorted({fed for types in FED_BY.values() for fed in types}))
def test_whatever_starts_an_automation_names_it(fed: TriggerType) -> None:
    config = {"properties": ["a"]} if fed is TriggerType.PROPERTY_CHANGED else {}
    automation = on(fed, **config)
    for type_ in FED_BY:
        event = make_event(type_, {"changedProperties": ["a"]})
        if first_mismatch(event, automation) is None:
            assert named_by(event, automation) is None


@pytest.mark.parametrize(
    ("given", "event", "why"),
    [
        ({"workspace_id": "w2"}, {}, Mismatch.OTHER_WORKSPACE),
        ({"status": "PAUSED"}, {}, Mismatch.INACTIVE),
        ({"activated_ms": 2000}, {}, Mismatch.BEFORE_ACTIVATION),
        ({"databaseId": "d1"}, {"databaseId": "d2"}, Mismatch.FILTER_MISMATCH),
        ({"databaseId": "d1"}, {"databaseId": "d1"}, None),
    ],
)
def test_all_the_other_checks_count_for_what_is_made_too(
    given: dict[str, Any], event: dict[str, Any], why: Mismatch | None
) -> None:
    automation = make_automation({"type": "RECORD_UPDATED", "config": {}}, **given)
    assert named_by(make_event("record.created", {"recordId": "r1", **event}), automation) == why


def test_a_machines_message_arms_nothing() -> None:
    message = {"id": "m1", "direction": "incoming", "autoSubmitted": True}
    event = make_event("message.created", {"conversation": {"id": "c1"}, "message": message})
    assert named_by(event, on("MESSAGE_CREATED")) is Mismatch.FILTER_MISMATCH
    assert named_by(event, on("EVENT", eventType="message.*")) is Mismatch.FILTER_MISMATCH


def test_an_automation_with_a_delay_waits() -> None:
    assert is_delayed(on("RECORD_UPDATED").definition)
    assert not is_delayed(make_automation().definition)
