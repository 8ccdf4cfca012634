"""Actions on conversations, through an engine, on both databases: what changes, and what is told of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipeline.engine import Engine
from shared.db.subjects import project_changes
from shared.model.event_fields import parse_instant
from shared.model.events import decode_entry
from shared.model.messages import message_of
from shared.model.subjects import project
from tests.acting import CONVERSATION, Stage, action
from tests.listening import capture_logs
from tests.rooms import Room, start, tree


@pytest.fixture
def stage(room: Room, engines: list[Engine]) -> Stage:
    return Stage(room, start(room, engines))


def test_labels_are_added_beside_those_that_are_there(stage: Stage) -> None:
    stage.knows(labels=["vip", "new"], status="open")
    row = stage.acts(action("ADD_LABEL", labels=["late", "vip", "late", "{{ conversation.status }}"]))
    assert row.status == "SUCCEEDED"
    assert stage.state()["labels"] == ["vip", "new", "late", "pending"]
    [event] = stage.told()
    assert event["type"] == "conversation.updated"
    assert event["payload"] == {
        "conversation": {"id": "c1", "status": "open", "labels": ["vip", "new", "late", "pending"]},
        "changedProperties": ["labels"],
        "before": {"labels": ["vip", "new"]},
    }
    assert stage.outputs(row)["1"] == {
        "conversationId": "c1",
        "labels": ["vip", "new", "late", "pending"],
        "changed": ["labels"],
        "event_id": event["id"],
    }


@pytest.mark.parametrize(
    ("type_", "before", "after"),
    [
        ("ADD_LABEL", None, ["a", "b"]),
        ("ADD_LABEL", "odd", ["a", "b"]),
        ("ADD_LABEL", ["b", "a"], None),
        ("REMOVE_LABEL", ["a", "c", "b"], ["c"]),
        ("REMOVE_LABEL", ["a"], []),
        ("REMOVE_LABEL", ["c"], None),
        ("REMOVE_LABEL", None, None),
    ],
)
def test_labels_that_change_nothing_are_told_of_by_nothing(
    stage: Stage, type_: str, before: Any, after: list[str] | None
) -> None:
    stage.knows(**({} if before is None else {"labels": before}))
    row = stage.acts(action(type_, labels=["a", "b"]))
    assert stage.outputs(row)["1"]["changed"] == ([] if after is None else ["labels"])
    assert len(stage.told()) == (0 if after is None else 1)
    assert stage.state().get("labels") == (before if after is None else after)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (action("SNOOZE", until="2020-01-01T10:00:00Z"), "SNOOZE_IN_THE_PAST"),
        (action("SNOOZE", until="{{ then }}"), "SNOOZE_IN_THE_PAST"),
        (action("ASSIGN", assignee_id="{{ conversation.nobody }}"), "CONFIG_INVALID"),
        (action("CREATE_NOTIFICATION", title=" {{ nothing }}"), "CONFIG_INVALID"),
    ],
)
def test_what_nobody_can_have_meant_changes_nothing(stage: Stage, written: dict[str, Any], code: str) -> None:
    stage.knows(status="open", assigneeId="a1")
    row = stage.acts(written, on={**CONVERSATION, "then": "2020-01-01T00:00:00Z"})
    assert stage.failure(row) == code
    assert stage.state() == {"status": "open", "assigneeId": "a1"}
    assert stage.told() == []


def test_labels_of_two_runs_at_once_are_all_kept(stage: Stage) -> None:
    stage.knows(labels=["x"])
    makers = [stage.room.automation(action("ADD_LABEL", labels=[name])) for name in ("a", "b", "c")]
    runs = [stage.room.run(maker, CONVERSATION) for maker in makers]
    stage.engine.take(runs)
    assert stage.engine.wait_idle(20)
    assert set(stage.state()["labels"]) == {"x", "a", "b", "c"}


@pytest.mark.parametrize(
    ("actions", "told", "state"),
    [
        (action("SET_STATUS", status="open"), "conversation.opened", {"status": "open"}),
        (action("SET_STATUS", status="resolved"), "conversation.resolved", {"status": "resolved"}),
        (action("SET_STATUS", status="{{ wanted }}"), "conversation.updated", {"status": "snoozed"}),
        (action("RESOLVE"), "conversation.resolved", {"status": "resolved"}),
        (action("ASSIGN", assignee_id=7), "conversation.updated", {"assigneeId": "7", "teamId": "t1"}),
        (action("ASSIGN", team_id=None), "conversation.updated", {"assigneeId": "a1", "teamId": None}),
        (
            action("SNOOZE", until="2030-01-01T10:00:00+02:00"),
            "conversation.updated",
            {"status": "snoozed", "snoozedUntil": "2030-01-01T08:00:00Z"},
        ),
    ],
)
def test_each_action_changes_its_fields_and_tells_of_them_once(
    stage: Stage, actions: dict[str, Any], told: str, state: dict[str, Any]
) -> None:
    before = {"status": "pending", "assigneeId": "a1", "teamId": "t1"}
    stage.knows(**before)
    stage.acts(actions, on={"conversation": {"id": "c1"}, "wanted": "snoozed"})
    assert stage.state() == before | state
    [event] = stage.told()
    assert event["type"] == told
    assert event["payload"]["conversation"] == {"id": "c1", **before, **state}
    changed = sorted(name for name in state if before.get(name) != state[name])
    assert event["payload"]["changedProperties"] == changed
    assert event["payload"]["before"] == {name: before.get(name) for name in changed}
    assert event["context"]["depth"] == 1


def test_a_status_that_is_so_already_is_told_of_by_nothing(stage: Stage) -> None:
    stage.knows(status="resolved")
    row = stage.acts(action("RESOLVE"))
    assert (stage.outputs(row)["1"]["changed"], stage.told()) == ([], [])


def test_what_somebody_else_changed_since_is_left_alone(stage: Stage) -> None:
    stage.knows(status="open", labels=["x"])
    row = stage.acts(
        action("SET_STATUS", status="resolved"), action("ADD_LABEL", labels=["y"]), entry_id="900-0"
    )
    assert stage.outputs(row)["1"]["stale"] == ["status"]
    assert stage.state() == {"status": "open", "labels": ["x", "y"]}


def test_minutes_of_rest_count_from_now(stage: Stage) -> None:
    stage.knows(status="open")
    row = stage.acts(action("SNOOZE", minutes=90))
    until = parse_instant(stage.outputs(row)["1"]["snoozedUntil"])
    wanted = datetime.now(UTC) + timedelta(minutes=90)
    assert timedelta(0) <= wanted - until < timedelta(minutes=1)
    assert stage.state()["snoozedUntil"] == stage.outputs(row)["1"]["snoozedUntil"]


def test_a_message_is_a_row_and_an_event_of_one_transaction(stage: Stage) -> None:
    stage.knows(status="pending", labels=["vip"])
    row = stage.acts(action("SEND_MESSAGE", content="Hello {{ conversation.id }}", private=True))
    message = stage.room.one("SELECT * FROM messages")
    assert (message.conversation_id, message.content, message.direction) == ("c1", "Hello c1", "outgoing")
    assert (message.sender_type, message.sender_id) == ("automation", row.automation_id)
    assert (message.private, message.auto_submitted, message.agent_id) == (1, 1, None)
    assert message.run_id == row.id
    [event] = stage.told()
    assert (event["type"], event["context"]["depth"]) == ("message.created", 1)
    assert event["context"]["stamp"] == f"{message.stamp_ms}-{message.stamp_seq}"
    told = event["payload"]
    assert told["conversation"] == {"id": "c1", "status": "pending", "labels": ["vip"]}
    assert {key: told["message"][key] for key in ("id", "direction", "senderType", "private")} == {
        "id": message.id,
        "direction": "outgoing",
        "senderType": "automation",
        "private": True,
    }
    assert stage.outputs(row)["1"] == {
        "conversationId": "c1",
        "messageId": message.id,
        "event_id": event["id"],
    }


def test_the_event_of_a_message_changes_nothing_when_it_comes_back(stage: Stage) -> None:
    stage.knows(status="pending")
    stage.acts(action("SEND_MESSAGE", content="Hello"))
    fields = [tree(row.fields) for row in stage.room.all("SELECT fields FROM outbox")]
    [entry] = [each for each in fields if each["type"] == "message.created"]
    event = decode_entry("7000000000000-0", {name.encode(): value.encode() for name, value in entry.items()})
    stage.knows(status="open", by="id:later", ms=6_000_000_000_000)
    change, message = project(event), message_of(event)
    assert change is not None
    with stage.room.database.begin() as conn:
        assert project_changes(conn, [change], now=datetime.now(UTC)) == 0
    assert stage.state()["status"] == "open"
    row = stage.room.one("SELECT * FROM messages")
    assert message is not None
    assert (message.id, message.stamp, message.run_id) == (row.id, (row.stamp_ms, row.stamp_seq), row.run_id)
    assert (message.content, message.auto_submitted, message.private) == (row.content, True, False)


@pytest.mark.parametrize(
    ("written", "type_", "told"),
    [
        (action("RESOLVE", message="Bye"), "RESOLVE", "conversation.resolved"),
        (action("ASSIGN", team_id="t2", message="Bye"), "ASSIGN", "conversation.updated"),
    ],
)
def test_a_message_goes_before_the_change(
    stage: Stage, written: dict[str, Any], type_: str, told: str
) -> None:
    stage.knows(status="pending")
    row = stage.acts(written)
    assert [event["type"] for event in stage.told()] == ["message.created", told]
    assert stage.room.one("SELECT content FROM messages").content == "Bye"
    output = stage.outputs(row)["1"]
    assert (output["event_id"], output["messageId"] != "") == (stage.told()[1]["id"], True)


@pytest.mark.parametrize(
    "written",
    [
        action("ADD_LABEL", labels=["a"]),
        action("REMOVE_LABEL", labels=["a"]),
        action("SEND_MESSAGE", content="x"),
        action("ASSIGN", assignee_id="a1", message="x"),
        action("SET_STATUS", status="open"),
        action("SNOOZE", minutes=1),
        action("RESOLVE", message="x"),
    ],
    ids=lambda written: str(written["type"]),
)
def test_an_action_without_its_conversation_ends_the_run(stage: Stage, written: dict[str, Any]) -> None:
    assert stage.failure(stage.acts(written)) == "REFERENCE_GONE"
    stage.knows(status="pending")
    stage.loses()
    assert stage.failure(stage.acts(written)) == "REFERENCE_GONE"
    assert stage.failure(stage.acts(written, on={"orderId": 1}, type="order.placed")) == "NO_CONVERSATION"
    assert stage.room.all("SELECT * FROM messages") == []
    assert stage.told() == []


def test_another_conversation_may_be_named(stage: Stage) -> None:
    stage.knows(status="open")
    stage.knows(id_="c2", status="open")
    stage.acts(action("RESOLVE", conversation_id="{{ other }}"), on={"other": "c2"}, type="order.placed")
    assert (stage.state()["status"], stage.state(id_="c2")["status"]) == ("open", "resolved")


@pytest.mark.parametrize(
    ("written", "on"),
    [
        (action("SEND_MESSAGE", content="{{ nothing }}"), {}),
        (action("SET_STATUS", status="{{ wanted }}"), {"wanted": "closed"}),
        (action("SNOOZE", until="{{ wanted }}"), {"wanted": "tomorrow"}),
        (action("ADD_LABEL", labels=["{{ nothing }}"]), {}),
        (action("ASSIGN", assignee_id="{{ wanted }}"), {"wanted": ""}),
        (action("RESOLVE", conversation_id="{{ nothing }}"), {}),
    ],
    ids=lambda given: str(given.get("type", "")),
)
def test_what_renders_to_nonsense_ends_the_run(
    stage: Stage, written: dict[str, Any], on: dict[str, Any]
) -> None:
    stage.knows(status="pending")
    assert stage.failure(stage.acts(written, on={"conversation": {"id": "c1"}, **on})) == "CONFIG_INVALID"


def test_the_text_of_a_message_stands_in_no_log(stage: Stage) -> None:
    stage.knows(status="pending")
    with capture_logs() as said:
        stage.acts(action("SEND_MESSAGE", content="s3ntence"), action("RESOLVE", message="s3ntence"))
    lines = stage.room.all("SELECT message, data FROM automation_logs")
    assert lines
    assert "s3ntence" not in str([(line.message, line.data) for line in lines])
    assert "run_moved" in str(said)
    assert "s3ntence" not in str(said)
