"""The customer answers in the second in which the follow-up fires.

Elsewhere the check was made when the item was picked and not when it was sent; and a key that lost its
microseconds cancelled a follow-up that was due. Here the run looks once more right before it acts, at what is
committed by then. An answer that comes after that comes after the follow-up.
"""

import threading
from dataclasses import dataclass, field

import pytest

from executors.contract import ActionResult, RunContext
from shared.model.actions import ActionConfig
from tests.delayed.day import INCOMING, MONDAY, OUTGOING, Day, hour, sent
from tests.field.conftest import Open
from tests.waiting import poll

NUDGE = {"type": "SEND_MESSAGE", "config": {"content": "Are you still there?"}}
REPLY = {"id": "m9", "direction": "incoming", "senderType": "contact"}


@pytest.fixture
def day(open_here: Open) -> Day:
    return nudged(Day(open_here(begins=MONDAY)))


def nudged(day: Day) -> Day:
    """Nudge who has been silent for an hour; the agent writes at ten."""
    day.rule("MESSAGE_CREATED", 60, NUDGE, conditions=OUTGOING)
    day.at("10:00").message("outgoing")
    return day


def reply(day: Day) -> None:
    """Have the customer's answer read and committed; no run goes on."""
    day.publish("message.created", {"conversation": {"id": "c1"}, "message": REPLY})
    day.road.post.step()


def test_an_answer_between_the_sweep_and_the_send_stops_it(day: Day) -> None:
    day.at("11:00").road.sweep()
    assert day.stands() == [("executed", None)]
    reply(day)
    day.road.rest()
    assert (sent(day), day.road.ends()) == ([], ["episode_moved"])
    assert day.stands() == [("skipped", "episode_moved")]
    day.at("11:30").message("outgoing")
    assert [row.due_at for row in day.rows()] == [hour("11:00"), hour("12:30")]
    day.at("12:30").sweep()
    assert (sent(day), day.stands()[1]) == (["Are you still there?"], ("executed", None))


def test_an_answer_a_moment_before_the_sweep_is_seen_by_it(day: Day) -> None:
    day.at("11:00")
    reply(day)
    day.sweep()
    assert (sent(day), day.road.runs(), day.stands()) == ([], [], [("skipped", "episode_moved")])


def test_an_answer_after_the_send_begins_another_episode(day: Day) -> None:
    day.at("11:00").sweep()
    reply(day)
    day.at("11:30").message("outgoing")
    first, second = day.rows()
    assert (first.status.value, first.ended_at) == ("executed", hour("11:00"))
    assert (second.status.value, second.due_at) == ("pending", hour("12:30"))
    assert sent(day) == ["Are you still there?"]


@pytest.mark.parametrize("round_", range(3))
def test_an_answer_at_the_very_moment_leaves_one_of_two_histories(day: Day, round_: int) -> None:
    del round_
    day.at("11:00").publish("message.created", {"conversation": {"id": "c1"}, "message": REPLY})
    barrier = threading.Barrier(2)

    def answer() -> None:
        barrier.wait(10)
        day.road.post.step()

    with_answer = threading.Thread(target=answer)
    with_answer.start()
    barrier.wait(10)
    day.road.sweep()
    with_answer.join(30)
    day.road.rest()
    day.after(hour("1:00") - MONDAY).sweep()
    histories = {
        (("skipped", "episode_moved"), ()): ([[], ["episode_moved"]]),
        (("executed", None), ("Are you still there?",)): ([["SUCCEEDED"]]),
    }
    (stands,) = day.stands()
    assert day.road.ends() in histories[stands, tuple(sent(day))]
    assert day.row().ended_at is not None


@dataclass(frozen=True)
class Slow:
    """A channel that takes its time."""

    entered: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def send(self, config: ActionConfig, run: RunContext) -> ActionResult:
        del config, run
        self.entered.set()
        assert self.opened.wait(30)
        return ActionResult({})


def test_an_answer_while_it_is_being_sent_comes_too_late_and_nothing_is_sent_twice(open_here: Open) -> None:
    slow = Slow()
    day = Day(open_here(begins=MONDAY, executors={"SEND_WEBHOOK": slow.send}))
    day.rule("MESSAGE_CREATED", 60, day.road.hook("/channel"), conditions=OUTGOING)
    day.at("10:00").message("outgoing")
    day.at("11:00").road.sweep()
    day.road.go()
    poll(slow.entered.is_set)
    reply(day)
    slow.opened.set()
    day.road.rest()
    day.at("12:30").sweep()
    assert (day.road.ends(), day.stands()) == (["SUCCEEDED"], [("executed", None)])
    assert day.row().ended_at == hour("11:00")


@pytest.mark.parametrize("created_at", ["2096-03-05T10:00:00.123457Z", "2096-03-05T10:00:00.000001Z"])
def test_microseconds_survive_the_way_through_the_database(open_here: Open, created_at: str) -> None:
    day = Day(open_here(begins=MONDAY))
    day.rule("MESSAGE_CREATED", 60, NUDGE, conditions=INCOMING)
    day.at("10:01").message("incoming", createdAt=created_at)
    row = day.row()
    assert row.episode.key.endswith(created_at[-7:-1])
    day.at("11:00").sweep()
    assert day.stands() == [("pending", None)]
    day.at("11:01").sweep()
    assert (day.stands(), sent(day)) == ([("executed", None)], ["Are you still there?"])
