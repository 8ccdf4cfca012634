"""What every check says of an event and an automation, and which of them says no first."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.model.automation import Automation
from shared.model.events import Context, Event
from shared.rules.conditions import compile_blame
from shared.rules.examining import Check, CheckName, Earlier, Examiner, Known, examine
from shared.rules.examining_delay import BEGINS
from shared.rules.talk import Talk
from tests.matching import make_automation, make_event

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KNOWN = Known(NOW, depth_max=5)
RECORD = {"databaseId": "d1", "changedProperties": ["status"], "properties": {"status": "done"}}
UPDATED = make_event("record.updated", RECORD, id="e1")
ON_STATUS = {"type": "PROPERTY_CHANGED", "config": {"properties": ["status"], "databaseId": "d1"}}
GATE = {
    "all": [
        {"field": "total", "op": "gt", "value": 100},
        {
            "any": [
                {"field": "country", "op": "eq", "value": "CH"},
                {"field": "vip", "op": "eq", "value": True},
            ]
        },
        {"not": {"field": "labels", "op": "contains", "value": "spam"}},
    ]
}
SILENT = Talk(None, None, None, None, None)
NOTES = {"all": [{"field": "message.private", "op": "eq", "value": True}]}
GOOD = {"total": 200, "country": "CH", "vip": False, "labels": []}


def stopped(event: Event, automation: Automation, known: Known = KNOWN) -> Check | None:
    found = examine(event, automation, known).stopped_by
    assert found == Examiner(automation).first_no(event, known)
    return found


def told(check: Check | None) -> tuple[Any, ...]:
    assert check is not None
    return check.name, check.wanted, check.found


def test_an_event_that_fits_passes_every_check_in_order() -> None:
    found = examine(UPDATED, make_automation(ON_STATUS), KNOWN)
    assert found.stopped_by is None
    assert [check.name for check in found.checks] == list(CheckName)
    assert all(check.passed for check in found.checks)


@pytest.mark.parametrize("status", ["PAUSED", "DRAFT", "ARCHIVED"])
def test_one_that_is_not_active_says_how_it_stands(status: str) -> None:
    assert told(stopped(UPDATED, make_automation(ON_STATUS, status=status))) == ("status", "ACTIVE", status)


def test_a_deleted_one_says_so() -> None:
    assert told(stopped(UPDATED, make_automation(ON_STATUS), replace(KNOWN, deleted_at=NOW))) == (
        "status",
        "ACTIVE",
        "DELETED",
    )


def test_one_that_never_was_active_says_so() -> None:
    check = stopped(UPDATED, make_automation(ON_STATUS, activated_ms=None))
    assert check is not None
    assert (check.name, check.reason) == (CheckName.STATUS, "the automation has never been active")


@pytest.mark.parametrize(
    ("event", "automation", "known", "expected"),
    [
        (
            replace(UPDATED, workspace_id="w2"),
            make_automation(ON_STATUS),
            KNOWN,
            ("workspace", "w1", "w2"),
        ),
        (
            UPDATED,
            make_automation(ON_STATUS, activated_ms=2_000),
            KNOWN,
            (
                "activation",
                datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
                datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
            ),
        ),
        (
            UPDATED,
            make_automation(ON_STATUS),
            replace(KNOWN, oldest_ms=1_001),
            (
                "age",
                datetime(1970, 1, 1, 0, 0, 1, 1000, tzinfo=UTC),
                datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
            ),
        ),
        (UPDATED, make_automation(), KNOWN, ("trigger", "order.placed", "record.updated")),
        (
            UPDATED,
            make_automation({"type": "RECORD_CREATED"}),
            KNOWN,
            ("trigger", ["record.created"], "record.updated"),
        ),
        (UPDATED, make_automation({"type": "MANUAL"}), KNOWN, ("trigger", [], "record.updated")),
        (UPDATED, make_automation(ON_STATUS, databaseId="d2"), KNOWN, ("database", "d2", "d1")),
        (
            UPDATED,
            make_automation({"type": "PROPERTY_CHANGED", "config": {"properties": ["due", "who"]}}),
            KNOWN,
            ("properties", ("due", "who"), ["status"]),
        ),
        (make_event("order.placed"), make_automation(execution_delay=5), KNOWN, ("delay", "a subject", None)),
        (
            UPDATED,
            make_automation(ON_STATUS),
            replace(KNOWN, earlier=Earlier("r1", "999-0", same=True)),
            ("duplicate", None, "r1"),
        ),
    ],
)
def test_the_first_check_that_says_no_tells_what_it_wanted_and_found(
    event: Event, automation: Automation, known: Known, expected: tuple[Any, ...]
) -> None:
    assert told(stopped(event, automation, known)) == expected


def test_a_machine_made_message_says_so() -> None:
    message = {"id": "m", "direction": "incoming", "autoSubmitted": "auto-replied"}
    event = make_event("message.created", {"conversation": {"id": "c"}, "message": message})
    check = stopped(event, make_automation({"type": "MESSAGE_CREATED"}))
    assert check is not None
    assert check.name is CheckName.SENDER


@pytest.mark.parametrize(
    ("told_of", "conditions", "talk", "expected"),
    [
        ({"direction": "outgoing", "private": True, "senderType": "agent"}, None, None, "a note"),
        ({"direction": "outgoing", "senderType": "automation"}, None, None, "a machine's"),
        ({"direction": "incoming"}, None, replace(SILENT, cleared=(1001, 0)), "answered"),
        ({"direction": "outgoing"}, None, replace(SILENT, newest_incoming=(1001, 0)), "replied to"),
        ({"direction": "incoming"}, None, replace(SILENT, cleared=(999, 0)), None),
        ({"direction": "outgoing", "private": True}, NOTES, SILENT, None),
        ({"direction": "incoming"}, None, None, None),
    ],
)
def test_a_message_that_begins_no_episode_says_what_it_is(
    told_of: dict[str, Any], conditions: dict[str, Any] | None, talk: Talk | None, expected: str | None
) -> None:
    automation = make_automation({"type": "MESSAGE_CREATED"}, execution_delay=5, conditions=conditions)
    payload = {"conversation": {"id": "c"}, "message": {"id": "m", **told_of}}
    event = make_event("message.created", payload, entry_id="1000-0")
    check = stopped(event, automation, replace(KNOWN, talk=talk))
    assert (None if check is None else told(check)) == (expected and ("delay", BEGINS, expected))
    assert stopped(event, make_automation({"type": "MESSAGE_CREATED"})) is None


def test_a_duplicate_names_the_earlier_run_and_tells_of_another_payload() -> None:
    known = replace(KNOWN, earlier=Earlier("r1", "999-0", same=False))
    check = stopped(UPDATED, make_automation(ON_STATUS), known)
    assert check is not None
    assert check.reason == (
        "entry 999-0 came first under the key id:e1 and started run r1, with another payload"
    )


def test_its_own_event_and_a_chain_too_deep_say_so() -> None:
    automation = make_automation(ON_STATUS)
    own = replace(UPDATED, context=Context(automation.id, "r", "r", 1))
    assert told(stopped(own, automation)) == ("self_trigger", None, automation.id)
    deep = replace(UPDATED, context=Context("a9", "r", "r", 5))
    assert told(stopped(deep, automation)) == ("depth", "below 5", 5)
    assert stopped(replace(UPDATED, context=Context("a9", "r", "r", 4)), automation) is None


@pytest.mark.parametrize(
    ("changed", "blamed"),
    [
        ({}, []),
        ({"total": 50}, [("conditions.all[0]", 100, 50)]),
        ({"total": None}, [("conditions.all[0]", 100, None)]),
        (
            {"country": "DE"},
            [("conditions.all[1].any[0]", "CH", "DE"), ("conditions.all[1].any[1]", True, False)],
        ),
        ({"country": "DE", "vip": True}, []),
        ({"labels": ["spam"]}, [("conditions.all[2].not", "spam", ["spam"])]),
    ],
)
def test_the_leaves_to_blame_are_named_and_no_others(
    changed: dict[str, Any], blamed: list[tuple[str, Any, Any]]
) -> None:
    event = make_event(payload={**GOOD, **changed})
    found = examine(event, make_automation(conditions=GATE), KNOWN)
    assert [(leaf.path, leaf.wanted, leaf.found) for leaf in found.blamed] == blamed
    assert (found.stopped_by is None) is (not blamed)
    assert len(found.leaves) == 4
    assert all(leaf.reason for leaf in found.blamed)


def test_no_conditions_blame_nothing() -> None:
    assert compile_blame(None)({}) == []
