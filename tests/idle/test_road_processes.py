"""Idle sequences through real processes: in order, once each, and nothing after a reply."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from knockon.client import EventDraft
from shared.db.types import must_instant, read_json
from shared.model.flag_states import SEQUENTIAL_IDLE, FlagState
from shared.services.ai_agents import make_agent
from shared.services.flags import set_feature_flag, set_flag
from tests.system.conftest import Opener
from tests.system.deployment import CALLER, WORKSPACE, Deployment
from tests.waiting import poll

TALKS = 50
FOLLOW = {"action": "follow_up", "duration": 1, "message": "Are you still there?"}
STEPS = [FOLLOW, FOLLOW, {"action": "resolve", "duration": 1, "message": "Closing for now."}]
ROOMS = ("matcher", "matcher", "timers", "timers", "watchdog")


def configure(site: Deployment) -> None:
    backends = site.backends
    wanted = (SEQUENTIAL_IDLE, FlagState.ON)
    set_feature_flag(backends.database, backends.clock, CALLER, wanted)
    set_flag(backends.database, backends.clock, CALLER, wanted)
    keys = {"name": "Nora", "profile": {"idle_rule": {"steps": STEPS}}}
    make_agent(backends.database, backends.clock, CALLER, keys, "nora")


def start(site: Deployment, workers: int) -> None:
    for room in (*ROOMS, *("worker" for _ in range(workers))):
        site.fleet.start(room)


def talk(place: int) -> str:
    return f"c{place}"


def message(conversation: str, id_: str, **told: Any) -> EventDraft:
    payload = {"conversation": {"id": conversation}, "message": {"id": id_, **told}}
    return EventDraft("message.created", WORKSPACE, payload)


def by_agent(conversation: str, id_: str) -> EventDraft:
    return message(conversation, id_, direction="outgoing", senderType="bot", agentId="nora", content="Hi.")


def by_contact(conversation: str, id_: str) -> EventDraft:
    return message(conversation, id_, direction="incoming", senderType="contact", content="I am back.")


def said(site: Deployment) -> dict[str, list[tuple[Any, str, int]]]:
    """Give of each conversation its messages in their order: stamp, id, and the index of the step or -1."""
    found: dict[str, list[tuple[Any, str, int]]] = {}
    rows = site.all(
        "SELECT conversation_id, id, stamp_ms, stamp_seq, parameters FROM messages"
        " ORDER BY conversation_id, stamp_ms, stamp_seq"
    )
    for row in rows:
        mark = read_json(row.parameters) if row.parameters else {}
        index = mark.get("idle_rule", {}).get("step_index", -1)
        found.setdefault(row.conversation_id, []).append(((row.stamp_ms, row.stamp_seq), row.id, index))
    return found


def indexes(site: Deployment, conversation: str) -> list[int]:
    return [index for _, _, index in said(site).get(conversation, ()) if index >= 0]


def rests(site: Deployment) -> bool:
    """Tell whether no step can fire any more."""
    return not site.all("SELECT id FROM idle_steps WHERE status IN ('pending', 'processing')")


def conversation(site: Deployment, id_: str) -> dict[str, Any]:
    row = site.one("SELECT data FROM subjects WHERE type = 'conversation' AND id = :id", id=id_)
    found: dict[str, Any] = read_json(row.data)
    return found


def test_three_steps_fire_in_order_at_their_times_and_the_last_one_resolves(opened: Opener) -> None:
    site = opened()
    configure(site)
    start(site, 1)
    site.publisher.publish_many([by_agent("c1", "m1")])
    poll(lambda: conversation_is_closed(site, "c1"), 40)
    assert indexes(site, "c1") == [0, 1, 2]
    steps = site.all("SELECT * FROM idle_steps ORDER BY step_index")
    assert [(row.step_index, row.status) for row in steps] == [(0, "fired"), (1, "fired"), (2, "fired")]
    assert all(str(row.ended_at) >= str(row.due_at) for row in steps)
    assert conversation(site, "c1")["closedReason"] == "RESOLVE_AI_IDLE"
    runs = site.all("SELECT source, automation_id, status FROM automation_runs")
    assert {(row.source, row.automation_id, row.status) for row in runs} == {("idle_step", None, "SUCCEEDED")}


def conversation_is_closed(site: Deployment, id_: str) -> bool:
    return bool(site.all("SELECT id FROM subjects")) and conversation(site, id_).get("status") == "resolved"


def test_a_reply_between_steps_silences_the_rest_and_the_next_answer_begins_at_the_first(
    opened: Opener,
) -> None:
    site = opened()
    configure(site)
    start(site, 1)
    site.publisher.publish_many([by_agent("c1", "m1")])
    poll(lambda: indexes(site, "c1") == [0], 30, every_s=0.01)
    site.publisher.publish_many([by_contact("c1", "m2")])
    poll(lambda: rests(site), 20)
    before = indexes(site, "c1")
    assert before in ([0], [0, 1])
    stopped = site.all("SELECT reason FROM idle_steps WHERE status = 'stopped'")
    assert [row.reason for row in stopped] == ["customer_replied"]
    site.publisher.publish_many([by_agent("c1", "m3")])
    poll(lambda: conversation_is_closed(site, "c1"), 40)
    assert indexes(site, "c1") == [*before, 0, 1, 2]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_fifty_conversations_with_replies_that_race_their_steps(opened: Opener) -> None:
    site = opened()
    configure(site)
    start(site, 4)
    site.publisher.publish_many([by_agent(talk(place), f"a{place}") for place in range(TALKS)])

    def answer(place: int) -> None:
        """Reply around the moment at which the conversation's step, another one for each third, is due."""
        awaited = place % 3
        poll(lambda: len(indexes(site, talk(place))) >= awaited, 60, every_s=0.02)
        rows = site.all(
            "SELECT due_at FROM idle_steps WHERE conversation_id = :id AND step_index = :at",
            id=talk(place),
            at=awaited,
        )
        if rows:
            now = site.backends.clock.now
            due_at = must_instant(rows[0].due_at)
            poll(lambda: now() >= due_at, 20, every_s=0.001 * (1 + place))
        site.publisher.publish_many([by_contact(talk(place), f"r{place}")])

    replying = range(0, TALKS, 2)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(answer, replying))
    poll(lambda: len(site.all("SELECT id FROM messages WHERE direction = 'incoming'")) == len(replying), 30)
    poll(lambda: rests(site), 60)
    for conversation_id, messages in said(site).items():
        fired = [index for _, _, index in messages if index >= 0]
        assert fired == list(range(len(fired))), conversation_id
        ids = [id_ for _, id_, _ in messages]
        place = int(conversation_id[1:])
        if place in replying:
            assert [index for _, _, index in messages[ids.index(f"r{place}") :] if index >= 0] == []
        else:
            assert fired == [0, 1, 2]
            assert conversation(site, conversation_id)["status"] == "resolved"
    runs = site.all("SELECT status FROM automation_runs")
    assert {row.status for row in runs} == {"SUCCEEDED"}
    twice = "SELECT conversation_id FROM idle_steps GROUP BY conversation_id, step_index HAVING count(*) > 1"
    assert site.all(twice) == []
