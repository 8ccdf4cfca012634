"""What recorded events make of an automation that waits: one run an episode, none of what ended."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.model.automation import Automation
from shared.rules.examining import Examiner, Known
from shared.rules.rehearsing import Episodes, Waiting
from shared.time.clock import from_epoch_ms
from tests.matching import make_automation, make_event

START = datetime(2026, 3, 2, tzinfo=UTC)
PENDING = {"all": [{"field": "conversation.status", "op": "eq", "value": "pending"}]}
HOUR = 60

Told = tuple[int, str, dict[str, Any]]  # minutes, type, payload


def status(minutes: int, value: str, verb: str = "updated", **more: Any) -> Told:
    return minutes, f"conversation.{verb}", {"conversation": {"id": "c1", "status": value, **more}}


def message(minutes: int, direction: str, **more: Any) -> Told:
    told = {"id": f"m{minutes}", "direction": direction, **more}
    return minutes, "message.created", {"conversation": {"id": "c1"}, "message": told}


def rehearsed(automation: Automation, *told: Told, end: int) -> Episodes:
    waiting, examiner = Waiting(automation), Examiner(automation)
    for minutes, type_, payload in told:
        ms = int((START + timedelta(minutes=minutes)).timestamp() * 1_000)
        event = make_event(type_, payload, entry_id=f"{ms}-0", occurred_at=from_epoch_ms(ms))
        known = Known(from_epoch_ms(ms), 5, subject=waiting.learn(event))
        waiting.judge(event, examiner.first_no(event, known) is None)
    return waiting.end(START + timedelta(minutes=end))


def stuck() -> Automation:
    return make_automation({"type": "CONVERSATION_UPDATED"}, conditions=PENDING, execution_delay=4 * HOUR)


@pytest.mark.parametrize(
    ("told", "end", "found"),
    [
        ([status(0, "pending")], 240, Episodes(1, 1, 0, 0)),
        ([status(0, "pending")], 239, Episodes(1, 0, 0, 1)),
        ([status(0, "pending"), status(90, "pending", note=1)], 240, Episodes(1, 1, 0, 0)),
        ([status(0, "pending"), status(180, "resolved", "resolved")], 600, Episodes(1, 0, 1, 0)),
        ([status(0, "pending"), status(300, "resolved", "resolved")], 600, Episodes(1, 1, 0, 0)),
        ([status(0, "pending"), status(10, "open"), status(11, "pending")], 245, Episodes(2, 0, 1, 1)),
        ([status(0, "pending"), status(300, "pending", note=1)], 900, Episodes(1, 1, 0, 0)),
        ([status(0, "pending", "created")], 240, Episodes(1, 1, 0, 0)),
        ([status(0, "open"), status(10, "pending", "opened")], 900, Episodes(0, 0, 0, 0)),
        (
            [status(0, "pending"), (10, "conversation.deleted", {"conversation": {"id": "c1"}})],
            900,
            Episodes(1, 0, 1, 0),
        ),
    ],
)
def test_a_state_fires_once_an_episode(told: list[Told], end: int, found: Episodes) -> None:
    assert rehearsed(stuck(), *told, end=end) == found


def chase() -> Automation:
    outgoing = {"all": [{"field": "message.direction", "op": "eq", "value": "outgoing"}]}
    return make_automation({"type": "MESSAGE_CREATED"}, conditions=outgoing, execution_delay=24 * HOUR)


@pytest.mark.parametrize(
    ("told", "end", "found"),
    [
        ([message(0, "outgoing"), message(10, "outgoing")], 1_440, Episodes(1, 0, 0, 1)),
        ([message(0, "outgoing"), message(10, "outgoing")], 1_450, Episodes(1, 1, 0, 0)),
        ([message(0, "outgoing"), message(180, "incoming")], 3_000, Episodes(1, 0, 1, 0)),
        ([message(0, "outgoing", private=True)], 3_000, Episodes(0, 0, 0, 0)),
        ([message(0, "outgoing", senderType="automation")], 3_000, Episodes(0, 0, 0, 0)),
        ([message(0, "outgoing"), message(1_500, "outgoing")], 9_000, Episodes(1, 1, 0, 0)),
    ],
)
def test_a_chase_follows_the_newest_reply_and_ends_with_an_answer(
    told: list[Told], end: int, found: Episodes
) -> None:
    assert rehearsed(chase(), *told, end=end) == found


def waits_for_agent() -> Automation:
    incoming = {"all": [{"field": "message.direction", "op": "eq", "value": "incoming"}]}
    return make_automation({"type": "MESSAGE_CREATED"}, conditions=incoming, execution_delay=HOUR)


@pytest.mark.parametrize(
    ("told", "end", "found"),
    [
        ([message(0, "incoming"), message(50, "incoming")], 60, Episodes(1, 1, 0, 0)),
        ([message(0, "incoming"), message(50, "outgoing")], 600, Episodes(1, 0, 1, 0)),
        ([message(0, "incoming"), message(50, "outgoing", private=True)], 600, Episodes(1, 1, 0, 0)),
        ([message(0, "incoming"), status(50, "resolved", "resolved")], 600, Episodes(1, 0, 1, 0)),
        (
            [message(0, "incoming"), message(10, "outgoing"), message(20, "incoming")],
            80,
            Episodes(2, 1, 1, 0),
        ),
    ],
)
def test_who_waits_for_an_answer_waits_from_the_first_question_on(
    told: list[Told], end: int, found: Episodes
) -> None:
    assert rehearsed(waits_for_agent(), *told, end=end) == found


def test_conditions_on_nothing_of_the_subject_follow_the_newest_event() -> None:
    always = make_automation({"type": "CONVERSATION_UPDATED"}, execution_delay=HOUR)
    assert rehearsed(always, status(0, "a"), status(30, "b"), end=60) == Episodes(2, 0, 1, 1)
    assert rehearsed(always, status(0, "a"), status(90, "b"), end=150) == Episodes(2, 2, 0, 0)
