"""Changes to our own tables: what is written, what is left alone, and what is told of it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.recording import write_batch
from pipeline.verdicts import Record, Standing, Verdict
from shared.db.subjects import find_subject, project_changes
from shared.model.effects import CreateSubject, Effect, Emit, Notify, UpdateSubject
from shared.model.events import Context
from shared.model.runs import ClaimedRun
from shared.model.stamps import Stamp
from shared.model.subjects import DATABASE_FIELD, SubjectDelete, SubjectWrite, data
from tests.journals import DONE, acted
from tests.rooms import Room, claim, tree
from tests.runs import NOW

EARLY, LATE = (1_000, 0), (7_000_000_000_000, 0)
ENTRY = "5000-3"


def ready(room: Room, **keys: Any) -> ClaimedRun:
    """Claim a run of an event at a known place in the stream."""
    [run] = claim(room, room.run(room.automation(), {}, entry_id=ENTRY, **keys))
    return run


def told(room: Room, fields: Mapping[str, Any], stamp: Stamp = EARLY, **keys: Any) -> None:
    """Have somebody else write fields of a subject."""
    type_, id_ = keys.get("type", "record"), keys.get("id", "r1")
    write = SubjectWrite("w1", type_, id_, stamp, keys.get("by", f"id:{stamp}"), fields)
    with room.database.begin() as conn:
        project_changes(conn, [write], now=NOW)


def write(room: Room, *records: Record) -> list[Verdict]:
    return room.database.transact(lambda conn: write_batch(conn, records, "w", datetime.now(UTC)).verdicts)


def act(room: Room, run: ClaimedRun, *effects: Effect, **parts: Any) -> Verdict:
    """Write one action with these effects."""
    [verdict] = write(room, acted(run, *effects, **parts))
    return verdict


def update(**fields: Any) -> UpdateSubject:
    return UpdateSubject("record", "r1", fields, force=False, event_type="record.updated")


def create(id_: str = "r1", **fields: Any) -> CreateSubject:
    return CreateSubject("record", id_, fields, "d1", "record.created")


def current(room: Room, type_: str = "record", id_: str = "r1") -> dict[str, Any]:
    with room.database.read() as conn:
        row = find_subject(conn, "w1", type_, id_)
    assert row is not None
    return data(row)


def emitted(room: Room) -> list[dict[str, Any]]:
    """Give what was told of, with its JSON read; ends of runs apart."""
    entries = [tree(row.fields) for row in room.all("SELECT fields FROM outbox ORDER BY id")]
    return [
        {**entry, "payload": tree(entry["payload"]), "context": tree(entry["context"])}
        for entry in entries
        if entry["type"] != "automation.executed"
    ]


def test_an_update_changes_what_differs_and_tells_of_it(room: Room) -> None:
    told(room, {"a": 1, "b": 2, DATABASE_FIELD: "d1"})
    run = ready(room)
    verdict = act(room, run, update(a=10, b=2, c=None, d=[1]))
    assert verdict.output["changed"] == ["a", "c", "d"]
    assert current(room) == {"a": 10, "b": 2, "c": None, "d": [1]}
    [event] = emitted(room)
    assert (event["type"], event["id"]) == ("record.updated", verdict.output["event_id"])
    assert event["payload"] == {
        "recordId": "r1",
        "databaseId": "d1",
        "properties": {"a": 10, "b": 2, "c": None, "d": [1]},
        "changedProperties": ["a", "c", "d"],
        "before": {"a": 1, "c": None, "d": None},
    }


def test_an_update_that_changes_nothing_tells_of_nothing(room: Room) -> None:
    told(room, {"a": 1})
    verdict = act(room, ready(room), update(a=1))
    assert (verdict.output, emitted(room)) == ({"changed": [], "stale": []}, [])


def test_true_in_the_place_of_one_is_a_change_and_one_written_otherwise_is_none(room: Room) -> None:
    told(room, {"a": 1, "b": 1, "c": {"d": [1]}})
    verdict = act(room, ready(room), update(a=True, b=1.0, c={"d": [True]}))
    assert verdict.output["changed"] == ["a", "c"]
    assert current(room)["a"] is True


def test_what_somebody_else_changed_after_the_trigger_is_left_alone_and_listed(room: Room) -> None:
    told(room, {"a": 1, "b": 1})
    told(room, {"a": 2}, LATE)
    verdict = act(room, ready(room), update(a=10, b=10))
    assert (verdict.output["changed"], verdict.output["stale"]) == (["b"], ["a"])
    assert current(room) == {"a": 2, "b": 10}


def test_a_newer_write_of_an_equal_value_makes_nothing_stale(room: Room) -> None:
    told(room, {"a": 1})
    told(room, {"a": 1}, LATE)
    assert act(room, ready(room), update(a=10)).output["stale"] == []


def test_force_overrides_what_somebody_else_changed(room: Room) -> None:
    told(room, {"a": 1})
    told(room, {"a": 2}, LATE)
    forced = UpdateSubject("record", "r1", {"a": 10}, force=True, event_type="record.updated")
    assert act(room, ready(room), forced).output["stale"] == []
    assert current(room) == {"a": 10}


def test_a_runs_own_earlier_write_is_not_stale(room: Room) -> None:
    told(room, {"a": 1, "b": 1})
    run = ready(room)
    first = act(room, run, update(a=2))
    own = frozenset({str(first.output["event_id"])})
    second = act(room, run, update(a=3), position=2, own_events=own)
    assert (second.output["changed"], second.output["stale"]) == (["a"], [])
    stranger = act(room, ready(room), update(a=4))
    assert stranger.output["stale"] == ["a"]


def test_two_runs_of_one_batch_see_each_others_writes(room: Room) -> None:
    told(room, {"a": 1})
    first, second, third = ready(room), ready(room), ready(room)
    verdicts = write(
        room, acted(first, update(a=2)), acted(second, update(b=5)), acted(third, update(a=9, b=9))
    )
    assert [verdict.output["stale"] for verdict in verdicts] == [[], [], ["a", "b"]]
    assert current(room) == {"a": 2, "b": 5}


def test_a_record_made_in_a_batch_can_be_changed_in_it(room: Room) -> None:
    first, second = ready(room), ready(room)
    change = UpdateSubject("record", "r1", {"b": 2}, force=True, event_type="record.updated")
    verdicts = write(room, acted(first, create(a=1)), acted(second, change))
    assert [verdict.standing for verdict in verdicts] == [Standing.WRITTEN] * 2
    assert current(room) == {"a": 1, "b": 2}
    assert [event["type"] for event in emitted(room)] == ["record.created", "record.updated"]


@pytest.mark.parametrize("before", ["nothing", "deleted"])
def test_an_update_of_what_is_not_there_ends_the_run(room: Room, before: str) -> None:
    if before == "deleted":
        told(room, {"a": 1})
        gone = SubjectDelete("w1", "record", "r1", LATE, "id:gone")
        with room.database.begin() as conn:
            project_changes(conn, [gone], now=NOW)
    run = ready(room)
    assert act(room, run, update(a=2)).standing is Standing.ENDED
    row = room.row(run.claim.run_id)
    assert (row.status, tree(row.error)["code"]) == ("FAILED", "REFERENCE_GONE")
    assert (room.all("SELECT * FROM run_actions"), emitted(room)) == ([], [])


def test_a_record_is_made_with_its_database_and_told_of(room: Room) -> None:
    verdict = act(room, ready(room), create(a=1))
    [event] = emitted(room)
    assert event["payload"] == {"recordId": "r1", "databaseId": "d1", "properties": {"a": 1}}
    assert (event["type"], event["id"]) == ("record.created", verdict.output["event_id"])


def test_a_record_whose_id_is_taken_is_refused_and_keeps_its_data(room: Room) -> None:
    told(room, {"a": 1})
    run = ready(room)
    assert act(room, run, create(a=2)).standing is Standing.ENDED
    assert tree(room.row(run.claim.run_id).error)["code"] == "ALREADY_EXISTS"
    assert current(room) == {"a": 1}


def test_a_record_made_again_shows_no_field_of_the_deleted_one(room: Room) -> None:
    told(room, {"a": 1, DATABASE_FIELD: "d0"})
    with room.database.begin() as conn:
        project_changes(conn, [SubjectDelete("w1", "record", "r1", (2_000, 0), "id:gone")], now=NOW)
    act(room, ready(room), create(b=2))
    [event] = emitted(room)
    assert event["payload"] == {"recordId": "r1", "databaseId": "d1", "properties": {"b": 2}}
    assert current(room) == {"b": 2}
    assert tree(room.one("SELECT data FROM subjects").data) == {"b": 2}


def test_two_records_of_one_id_in_one_batch_are_one(room: Room) -> None:
    verdicts = write(room, acted(ready(room), create(a=1)), acted(ready(room), create(a=2)))
    assert [verdict.standing for verdict in verdicts] == [Standing.WRITTEN, Standing.ENDED]
    assert current(room) == {"a": 1}


def test_a_refused_action_leaves_nothing_of_its_earlier_effects(room: Room) -> None:
    told(room, {"a": 1})
    room.owner()
    effects = (update(a=2), Notify("t", "b", ("owner",)), Emit("order.seen", {}), create(a=9))
    assert act(room, ready(room), *effects).standing is Standing.ENDED
    assert current(room) == {"a": 1}
    assert (emitted(room), room.all("SELECT * FROM notifications")) == ([], [])


@pytest.mark.parametrize(
    ("type_", "payload"),
    [
        ("page", {"pageId": "x1", "a": 2, "b": 1}),
        ("conversation", {"conversation": {"id": "x1", "a": 2, "b": 1}}),
        ("contact", {"contact": {"id": "x1", "a": 2, "b": 1}}),
        ("order", {"subject": {"type": "order", "id": "x1", "state": {"a": 2, "b": 1}}}),
    ],
)
def test_each_type_is_told_of_in_its_own_shape(room: Room, type_: str, payload: dict[str, Any]) -> None:
    told(room, {"a": 1, "b": 1}, type=type_, id="x1")
    change = UpdateSubject(type_, "x1", {"a": 2}, force=False, event_type=f"{type_}.updated")
    act(room, ready(room), change)
    [event] = emitted(room)
    assert event["type"] == f"{type_}.updated"
    assert event["payload"] == {**payload, "changedProperties": ["a"], "before": {"a": 1}}


def test_an_own_event_is_told_one_step_deeper_in_its_chain(room: Room) -> None:
    run = ready(room, context=Context("other", "r0", "root-run", 2))
    act(room, run, Emit("order.reviewed", {"n": 1}))
    [event] = emitted(room)
    assert (event["type"], event["payload"]) == ("order.reviewed", {"n": 1})
    assert event["context"] == {
        "automationId": run.automation_id,
        "runId": run.claim.run_id,
        "rootRunId": "root-run",
        "depth": 3,
    }


def test_the_event_of_a_change_carries_the_stamp_of_the_write(room: Room) -> None:
    told(room, {"a": 1}, LATE)
    act(room, ready(room), UpdateSubject("record", "r1", {"b": 2}, force=False, event_type="record.updated"))
    [event] = emitted(room)
    assert event["context"]["stamp"] == f"{LATE[0]}-{LATE[1] + 1}"


def test_an_event_beyond_the_limits_ends_the_run(room: Room) -> None:
    run = ready(room)
    assert act(room, run, Emit("order.seen", {"text": "x" * 300_000})).standing is Standing.ENDED
    assert tree(room.row(run.claim.run_id).error)["code"] == "EVENT_REFUSED"


def test_a_change_and_its_checkpoint_are_one_transaction(room: Room) -> None:
    told(room, {"a": 1})
    room.owner()
    run = ready(room)
    record = acted(run, update(a=2), Notify("t", "b", ("owner",)), outcome=DONE)
    with room.database.begin() as conn:
        write_batch(conn, [record], "w", NOW)
        conn.rollback()  # as if the process had died before its COMMIT
    assert current(room) == {"a": 1}
    assert room.all("SELECT * FROM notifications") == []
    assert [verdict.standing for verdict in write(room, record)] == [Standing.WRITTEN]
    assert [verdict.standing for verdict in write(room, record)] == [Standing.FENCED]
    assert current(room) == {"a": 2}
    assert len(room.all("SELECT * FROM notifications")) == 1
    assert len(emitted(room)) == 1
