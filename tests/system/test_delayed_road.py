"""The stories of docs/delayed.md through real processes: what waits a minute is due in a few seconds."""

from typing import Any

from shared.db.types import read_json
from tests.delayed.past import AGO_S, apply_waiting, stands, tell_past
from tests.system.conftest import Opener
from tests.system.deployment import Deployment
from tests.waiting import poll

PENDING = {"field": "conversation.status", "op": "eq", "value": "pending"}
OUTGOING = {"field": "message.direction", "op": "eq", "value": "outgoing"}
UNPAID = {"field": "order.paid", "op": "eq", "value": False}
EXECUTED, CHANGED, MOVED = ("executed", None), ("skipped", "conditions_changed"), ("skipped", "episode_moved")
ROOMS = ("matcher", "timers", "timers", "worker")


def conversation(id_: str, **fields: Any) -> dict[str, Any]:
    return {"conversation": {"id": id_, **fields}}


def message(talk: str, id_: str, direction: str) -> dict[str, Any]:
    sender = "contact" if direction == "incoming" else "agent"
    return {**conversation(talk), "message": {"id": id_, "direction": direction, "senderType": sender}}


def order(id_: str, *, paid: bool) -> dict[str, Any]:
    return {"subject": {"type": "order", "id": id_, "state": {"paid": paid}}}


def await_story(site: Deployment, ended: int) -> None:
    """Let the processes work until so many delayed runs have ended."""
    for room in ROOMS:
        site.fleet.start(room)
    runs = "SELECT id FROM automation_runs WHERE source = 'delayed' AND status = 'SUCCEEDED'"
    poll(lambda: len(site.all(runs)) >= ended, 30, every_s=0.05)
    site.await_ended(ended)
    assert len(site.all("SELECT id FROM automation_runs WHERE source = 'delayed'")) == ended


def test_story_1_the_one_that_stayed_pending_is_labelled(opened: Opener) -> None:
    site = opened()
    label = {"type": "ADD_LABEL", "config": {"labels": ["stale-pending"]}}
    apply_waiting(site, {"type": "CONVERSATION_UPDATED"}, label, site.hook("/due"), conditions=PENDING)
    tell_past(
        site,
        (AGO_S + 9, "conversation.created", conversation("c1", status="open")),
        (AGO_S, "conversation.updated", conversation("c1", status="pending")),
        (AGO_S, "conversation.updated", conversation("c2", status="pending")),
        (30, "conversation.updated", conversation("c1", status="pending", touched=1)),
        (20, "conversation.resolved", conversation("c2", status="resolved")),
    )
    await_story(site, 1)
    assert stands(site) == {"c1": EXECUTED, "c2": CHANGED}
    known = {row.id: read_json(row.data) for row in site.all("SELECT id, data FROM subjects")}
    assert known["c1"]["labels"] == ["stale-pending"]
    assert "labels" not in known["c2"]
    assert len(site.receiver.deliveries("/due")) == 1


def test_story_2_the_customer_who_went_quiet_is_written_to_once(opened: Opener) -> None:
    site = opened()
    say = {"type": "SEND_MESSAGE", "config": {"content": "Did that solve it?"}}
    apply_waiting(site, {"type": "MESSAGE_CREATED"}, say, conditions=OUTGOING)
    tell_past(
        site,
        (AGO_S + 9, "message.created", message("c1", "m1", "incoming")),
        (AGO_S + 5, "message.created", message("c1", "m2", "outgoing")),
        (AGO_S, "message.created", message("c1", "m3", "outgoing")),
        (AGO_S, "message.created", message("c2", "m4", "outgoing")),
        (25, "message.created", message("c2", "m5", "incoming")),
    )
    await_story(site, 1)
    assert stands(site) == {"c1": EXECUTED, "c2": MOVED}
    sent = site.all("SELECT conversation_id FROM messages WHERE sender_type = 'automation'")
    assert [row.conversation_id for row in sent] == ["c1"]


def test_an_order_that_nobody_pays_is_told_of(opened: Opener) -> None:
    site = opened()
    trigger = {"type": "EVENT", "config": {"eventType": "order.*"}}
    apply_waiting(site, trigger, site.hook("/unpaid"), conditions=UNPAID)
    tell_past(
        site,
        (AGO_S, "order.placed", order("o1", paid=False)),
        (AGO_S, "order.placed", order("o2", paid=False)),
        (30, "order.paid", order("o2", paid=True)),
    )
    await_story(site, 1)
    assert stands(site) == {"o1": EXECUTED, "o2": CHANGED}
    assert len(site.receiver.deliveries("/unpaid")) == 1
