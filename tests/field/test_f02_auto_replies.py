"""An auto-responder taken for a customer.

Elsewhere a customer's out-of-office mail was answered automatically, which produced the next one; one report
counts eleven conversations before it died down. No trace of a cause crosses the mail system. Here a message
that says of itself that a machine wrote it starts nothing, and is no answer: what waits for the customer goes
on waiting.
"""

from typing import Any

import pytest

from tests.delayed.day import INCOMING, MONDAY, OUTGOING, Day, hour, sent
from tests.field.conftest import Open
from tests.rooms import tree

GOT_IT = {"type": "SEND_MESSAGE", "config": {"content": "We got it"}}
NUDGE = {"type": "SEND_MESSAGE", "config": {"content": "Are you still there?"}}
MARKS: list[dict[str, Any]] = [
    {"autoSubmitted": "auto-replied"},
    {"precedence": "bulk"},
    {"returnPath": "<>"},
    {"ownAddress": True},
]


@pytest.fixture
def day(open_here: Open) -> Day:
    return Day(open_here(begins=MONDAY))


def skipped(day: Day, reason: str) -> int:
    keys = day.road.post.backends.keys
    return day.road.post.count(keys.skipped(reason))


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: next(iter(mark)))
def test_a_machines_message_starts_nothing_and_is_no_answer(day: Day, mark: dict[str, Any]) -> None:
    at_once = day.rule("MESSAGE_CREATED", None, GOT_IT, conditions=INCOMING)
    day.rule("MESSAGE_CREATED", 60, NUDGE, conditions=OUTGOING)
    day.at("10:00").message("outgoing")
    before = (day.row(), day.road.ends(at_once), skipped(day, "filter_mismatch"))
    day.message("incoming", **mark)
    assert (day.row(), day.road.ends(at_once)) == before[:2] == (before[0], ["conditions"])
    assert skipped(day, "filter_mismatch") == before[2] + 2
    day.at("10:59").sweep()
    assert sent(day) == []
    day.at("11:00").sweep()
    assert (sent(day), day.stands()) == (["Are you still there?"], [("executed", None)])


def test_an_out_of_office_mail_for_each_message_of_ours_does_not_go_round(day: Day) -> None:
    day.rule("MESSAGE_CREATED", None, GOT_IT, conditions=INCOMING)
    day.rule("MESSAGE_CREATED", 60, NUDGE, conditions=OUTGOING)
    day.at("10:00").message("outgoing")
    told = 0
    for clock in ("10:30", "11:00", "11:30", "12:30", "14:00", "18:00"):
        day.at(clock).sweep()
        for _ in range(len(day.road.told("message.created")) - told):
            day.message("incoming", autoSubmitted="auto-replied")
        told = len(day.road.told("message.created"))
    assert sent(day) == ["Are you still there?"]


def test_a_machines_message_makes_no_customer_wait(day: Day) -> None:
    day.rule("MESSAGE_CREATED", 60, GOT_IT, conditions=INCOMING)
    day.at("10:00").message("incoming", autoSubmitted="auto-generated")
    assert day.rows() == []
    day.at("10:30").message("incoming")
    day.at("10:40").message("incoming", autoSubmitted="auto-generated")
    assert (day.row().due_at, day.row().episode.message_id) == (hour("11:30"), "m2")


def test_messages_that_are_not_marked_have_a_run_each_that_says_why_it_ran(day: Day) -> None:
    day.rule("MESSAGE_CREATED", None, GOT_IT, conditions=INCOMING)
    for _ in range(20):
        day.message("incoming")
    runs = [run for run in day.road.runs() if run.skip_reason is None]
    assert [tree(run.input)["payload"]["message"]["id"] for run in runs] == [f"m{n + 1}" for n in range(20)]
    assert {run.trigger_type for run in runs} == {"MESSAGE_CREATED"}
