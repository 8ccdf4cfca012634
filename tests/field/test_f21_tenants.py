"""The filter is stored, and not applied.

Two workspaces have a database of the same id. Elsewhere subscriptions were matched by that id alone, and one
tenant received another's records without a sound. Here the workspace is part of every look-up, and what
belongs to another one is answered exactly as what does not exist.
"""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from shared.db.log_reads import LogQuery, newest_logs, run_log
from shared.db.reads import read_run
from shared.db.run_lists import RunQuery, list_runs
from shared.db.schema import METADATA
from shared.dead_stream import list_dead
from shared.errors import NotFound
from shared.services.automations import activate, delete, pause
from shared.services.backends import Backends
from shared.services.runs import Insistence, ReplayFrom, cancel, replay, start_by_hand
from tests.field.road import W1, W2, Road
from tests.listening import capture_logs

ON_D1 = {"type": "RECORD_CREATED", "config": {"databaseId": "d1"}}
THEIRS = "belongs-to-w2"
MARK = {"type": "UPDATE_RECORD", "config": {"properties": {"seen": True}}}


def record(**properties: Any) -> dict[str, Any]:
    return {"recordId": "r2", "databaseId": "d1", "properties": properties}


def ours(road: Road) -> str:
    """Give everything that w1 can see, as text: its rows, and what was posted for it."""
    found = [str(road.receiver.deliveries())]
    with road.room.database.read() as conn:
        for name, table in METADATA.tables.items():
            if "workspace_id" in table.columns:
                rows = conn.execute(text(f"SELECT * FROM {name} WHERE workspace_id = 'w1'")).all()
                found += [str(row) for row in rows]
    return "\n".join(found)


def test_an_event_of_another_workspace_starts_nothing(road: Road) -> None:
    road.automation(road.hook("/w1"), on=ON_D1)
    road.publish("record.created", record(name=THEIRS), workspace_id="w2")
    road.rest()
    assert (road.runs(), road.receiver.deliveries()) == ([], [])
    assert road.data("r2", "w2") == {"name": THEIRS}
    assert THEIRS not in ours(road)


def test_an_event_of_no_workspace_is_buried_and_logged(road: Road) -> None:
    road.automation(road.hook("/w1"), on=ON_D1)
    with capture_logs() as lines:
        entry_id = road.publish_raw({"type": "record.created", "payload": '{"databaseId": "d1"}'})
        road.rest()
    assert road.runs() == []
    (dead,) = list_dead(road.room.parts.redis, road.room.parts.keys, 10)
    assert (dead.entry_id, dead.reason) == (entry_id, "workspaceId: is missing")
    assert [line["entry_id"] for line in lines if line["event"] == "entry_buried"] == [entry_id]


def test_a_record_of_another_workspace_is_not_there(road: Road) -> None:
    road.publish("record.created", record(name=THEIRS), workspace_id="w2")
    road.automation(MARK, road.hook("/w1"), on="order.placed")
    road.publish("order.placed", {"recordId": "r2"})
    road.rest()
    run = road.run()
    assert (run.status, run.retry_count, road.code(run)) == ("FAILED", 0, "REFERENCE_GONE")
    assert road.receiver.deliveries() == []
    assert road.data("r2", "w2") == {"name": THEIRS}
    assert THEIRS not in ours(road)


def test_a_record_of_the_same_id_is_each_workspaces_own(road: Road) -> None:
    road.publish("record.created", record(name=THEIRS), workspace_id="w2")
    body = {"name": "{{ subject.name }}"}
    road.automation(MARK, road.hook("/w1", {"body": body}), on=ON_D1)
    road.publish("record.created", record(size=1))
    road.rest()
    assert road.ends() == ["SUCCEEDED"]
    assert (road.data("r2"), road.data("r2", "w2")) == ({"size": 1, "seen": True}, {"name": THEIRS})
    assert THEIRS not in ours(road)


def test_the_same_event_id_in_two_workspaces_is_two_events(road: Road) -> None:
    for caller in (W1, W2):
        road.automation(road.hook(f"/{caller.workspace_id}"), on=ON_D1, caller=caller, key="same")
        road.publish("record.created", record(), workspace_id=caller.workspace_id, id="e1")
    road.rest()
    assert sorted((run.workspace_id, run.status) for run in road.runs()) == [
        ("w1", "SUCCEEDED"),
        ("w2", "SUCCEEDED"),
    ]
    assert road.post.skipped("deduped") == 0


WISHES: list[Callable[[Backends, str, str], object]] = [
    lambda backends, _, run_id: replay(backends, W2, [run_id], ReplayFrom.FAILED_ACTION),
    lambda backends, _, run_id: cancel(backends, W2, run_id, Insistence.FORCE),
    lambda backends, automation_id, _: start_by_hand(backends, W2, automation_id, {}),
    lambda backends, automation_id, _: pause(backends, W2, automation_id),
    lambda backends, automation_id, _: activate(backends, W2, automation_id),
    lambda backends, automation_id, _: delete(backends, W2, automation_id),
]


def test_what_belongs_to_another_workspace_is_answered_as_what_does_not_exist(road: Road) -> None:
    automation_id = road.automation(MARK, on="order.placed")
    road.publish("order.placed", {"recordId": "gone"})
    road.rest()
    run_id = road.run().id
    before = ours(road)
    for wish in WISHES:
        answers = []
        for automation, run in ((automation_id, run_id), ("no-such", "no-such")):
            with pytest.raises(NotFound) as refused:
                wish(road.post.backends, automation, run)
            answers.append(str(refused.value).replace(automation, "X").replace(run, "X"))
        assert answers[0] == answers[1]
    assert ours(road) == before


def test_another_workspaces_lists_and_logs_hold_nothing_of_it(road: Road) -> None:
    automation_id = road.automation(MARK, on="order.placed")
    road.publish("order.placed", {"recordId": "gone"})
    road.rest()
    run_id = road.run().id
    with road.room.database.read() as conn:
        assert list_runs(conn, RunQuery("w2", 50, automation_id=automation_id)) == []
        assert list_runs(conn, RunQuery("w2", 50)) == []
        assert read_run(conn, "w2", run_id) is None
        assert run_log(conn, "w2", run_id, most=50) == []
        assert newest_logs(conn, LogQuery("w2", run_id=run_id), most=50) == []
        assert len(run_log(conn, "w1", run_id, most=50)) > 0
