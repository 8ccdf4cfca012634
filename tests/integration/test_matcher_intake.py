"""From the stream to rows and handles, on both databases and a real Redis."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from matcher.intake import Intake
from matcher.stream import Arrival, Reading
from shared.db.automations import delete_automation
from shared.db.types import must_instant
from shared.dead_stream import list_dead
from shared.model.events import Context
from shared.model.runs import QueueKind
from shared.model.statuses import AutomationStatus
from shared.services.backends import Backends
from shared.time.clock import SystemClock
from tests.matching import Post, open_post
from tests.rooms import tree


@pytest.fixture
def post(backends: Backends) -> Post:
    """Give a matcher of its own servers, on the machine's clock."""
    return open_post(replace(backends, clock=SystemClock()))


def test_an_event_becomes_a_run_with_a_handle(post: Post) -> None:
    automation = post.add()
    entry_id = post.publish(payload={"orderId": 17}, id="e1", source="shop")
    assert post.step() == 1
    (run,) = post.runs()
    assert (run.automation_id, run.automation_version, run.status) == (automation.id, 1, "PENDING")
    assert (run.entry_id, run.event_key, run.trigger_type) == (entry_id, "s:shop|e1", "EVENT")
    assert run.source_id == f"{automation.id}:s:shop|e1"
    assert (run.depth, run.root_run_id, run.event) == (0, run.id, None)
    assert tree(run.input)["payload"] == {"orderId": 17}
    assert post.handled() == [run.id]
    assert post.pending() == 0
    assert post.count(post.backends.keys.matched("EVENT")) == 1


def test_a_handle_and_its_row_tell_the_same_instant(post: Post) -> None:
    post.add()
    post.publish()
    post.step()
    (run,) = post.runs()
    head = post.backends.queue.head_pushed_at(QueueKind.MAIN)
    assert must_instant(run.enqueued_at) == head


def test_all_automations_that_match_run_by_age(post: Post) -> None:
    now = datetime.now(UTC)
    younger = post.add(updated_at=now)
    older = post.add(updated_at=now - timedelta(seconds=1))
    post.publish()
    post.step()
    assert [run.automation_id for run in post.runs()] == [older.id, younger.id]
    assert post.handled() == [run.id for run in post.runs()]


def test_a_chain_keeps_its_root_and_depth(post: Post) -> None:
    post.add()
    post.publish(context=Context("a9", "r9", "root9", 3, None))
    post.step()
    (run,) = post.runs()
    assert (run.depth, run.root_run_id) == (3, "root9")


def test_a_root_that_is_no_run_of_ours_is_not_kept(post: Post) -> None:
    post.add()
    post.publish(context=Context("a9", "r9", "x" * 150, 3, None))
    post.step()
    (run,) = post.runs()
    assert run.root_run_id == run.id


def test_a_large_event_is_kept_whole_beside_its_cut_input(post: Post) -> None:
    post.add()
    post.publish(payload={"text": "ä" * 60_000})
    post.step()
    (run,) = post.runs()
    assert tree(run.input)["truncated"] is True
    assert tree(run.event)["payload"] == {"text": "ä" * 60_000}


def test_an_event_published_twice_is_one_run(post: Post) -> None:
    post.add()
    post.publish(id="e1")
    post.step()
    post.publish(id="e1")
    post.step()
    assert len(post.runs()) == 1
    assert len(post.handled()) == 1
    assert post.skipped("deduped") == 1


def test_an_event_published_twice_into_one_batch_is_one_run(post: Post) -> None:
    post.add()
    first = post.publish(id="e1")
    post.publish(id="e1")
    post.publish(payload={"other": 1}, id="e1")
    assert post.step() == 3
    assert [run.entry_id for run in post.runs()] == [first]
    assert (post.skipped("deduped"), post.health("duplicate_conflict")) == (1, 1)
    assert post.pending() == 0


def test_another_payload_under_a_known_key_is_a_conflict_and_not_run(post: Post) -> None:
    post.add()
    post.publish(payload={"total": 1}, id="e1")
    post.step()
    post.publish(payload={"total": 2}, id="e1")
    post.step()
    assert [tree(run.input)["payload"] for run in post.runs()] == [{"total": 1}]
    assert (post.skipped("deduped"), post.health("duplicate_conflict")) == (0, 1)


def test_without_the_marks_the_unique_index_decides(post: Post) -> None:
    automation = post.add()
    post.publish(id="e1")
    post.step()
    post.backends.redis.delete(post.backends.keys.dedupe(automation.id, "id:e1"))
    post.publish(id="e1")
    post.step()
    assert len(post.runs()) == 1
    assert post.skipped("deduped") == 1


def test_a_mark_without_a_row_suppresses_nothing(post: Post) -> None:
    automation = post.add()
    client: Any = post.backends.redis
    client.set(post.backends.keys.dedupe(automation.id, "id:e1"), "1-0", ex=600)
    post.publish(id="e1")
    post.step()
    assert len(post.runs()) == 1
    assert post.skipped("deduped") == 0


def test_a_mark_holds_the_entry_for_ten_minutes(post: Post) -> None:
    automation = post.add()
    entry_id = post.publish(id="e1")
    post.step()
    client: Any = post.backends.redis
    name = post.backends.keys.dedupe(automation.id, "id:e1")
    assert client.get(name) == entry_id.encode()
    assert 590 < client.ttl(name) <= 600


def test_the_same_id_in_two_workspaces_is_two_events(post: Post) -> None:
    post.add()
    post.add(workspace_id="w2")
    post.publish(id="e1")
    post.publish(id="e1", workspace_id="w2")
    post.step()
    assert sorted(run.workspace_id for run in post.runs()) == ["w1", "w2"]


def test_an_entry_taken_again_wakes_its_run_and_makes_no_second(post: Post) -> None:
    post.add()
    entry_id = post.publish(id="e1")
    reading = post.stream.read(10, block_ms=1)
    post.intake.take(reading)
    (delivery,) = reading.deliveries
    again = replace(delivery, arrival=Arrival.AGAIN, times=2)
    post.intake.take(Reading((again,), reading.version))
    (run,) = post.runs()
    assert run.entry_id == entry_id
    assert post.handled() == [run.id, run.id]
    assert post.skipped("deduped") == 0


def test_an_entry_taken_again_leaves_a_claimed_run_alone(post: Post) -> None:
    post.add()
    post.publish(id="e1")
    reading = post.stream.read(10, block_ms=1)
    post.intake.take(reading)
    with post.backends.database.begin() as conn:
        conn.exec_driver_sql("UPDATE automation_runs SET lease = 1, status = 'RUNNING'")
    again = replace(reading.deliveries[0], arrival=Arrival.AGAIN, times=2)
    post.intake.take(Reading((again,), reading.version))
    assert len(post.handled()) == 1


def test_an_activation_is_seen_before_the_event_that_follows_it(post: Post) -> None:
    post.publish()
    post.step()
    assert post.runs() == []
    post.add()
    post.publish()
    post.step()
    assert len(post.runs()) == 1


def test_a_pause_a_change_and_a_deletion_are_seen(post: Post) -> None:
    row = post.add()
    post.publish()
    post.step()
    post.change(replace(row, status=AutomationStatus.PAUSED, updated_at=datetime.now(UTC)))
    post.publish()
    post.step()
    assert (len(post.runs()), post.skipped("inactive")) == (1, 1)
    definition = {**row.definition, "trigger": {"type": "EVENT", "config": {"eventType": "order.paid"}}}
    post.change(replace(row, definition=definition, version=2, updated_at=datetime.now(UTC)))
    post.publish()
    post.publish("order.paid")
    post.step()
    assert [run.automation_version for run in post.runs()] == [1, 2]
    with post.backends.database.begin() as conn:
        delete_automation(conn, row.id, now=datetime.now(UTC))
    post.backends.redis.incr(post.backends.keys.index_version)
    post.publish("order.paid")
    post.step()
    assert (len(post.runs()), post.skipped("inactive")) == (2, 1)


def test_a_change_is_found_though_the_counter_was_lost(post: Post) -> None:
    intake = Intake(post.backends, timedelta(days=36_500))
    intake.take(Reading((), 0))
    post.add()
    intake._loader._loaded_s -= 3600
    post.publish()
    intake.take(replace(post.stream.read(10, block_ms=1), version=0))
    assert len(post.runs()) == 1


def test_a_definition_that_cannot_be_read_is_left_out_and_counted(post: Post) -> None:
    good, bad = post.add(), post.add()
    post.change(replace(bad, definition={"trigger": "what?"}, updated_at=datetime.now(UTC)))
    for _ in range(2):
        post.publish()
        post.step()
    assert {run.automation_id for run in post.runs()} == {good.id}
    assert post.health("definitions_unreadable") == 1


def test_an_event_before_the_activation_starts_nothing(post: Post) -> None:
    seconds, _ = post.backends.redis.time()
    post.publish()
    post.add(activated_ms=(seconds + 60) * 1000)
    post.step()
    assert post.runs() == []
    assert post.skipped("inactive") == 1


def test_an_event_older_than_retention_less_a_day_starts_nothing(backends: Backends) -> None:
    post = open_post(replace(backends, clock=SystemClock()), retention=timedelta(days=2))
    post.add()
    client: Any = post.backends.redis
    old = int((datetime.now(UTC) - timedelta(days=1, minutes=1)).timestamp() * 1000)
    fields = {"type": "order.placed", "workspaceId": "w1", "payload": "{}"}
    client.xadd(post.backends.keys.stream, fields, id=f"{old}-0")
    post.publish()
    post.step()
    assert len(post.runs()) == 1
    assert post.skipped("expired") == 1


def test_a_workspace_with_a_long_backlog_goes_to_the_bulk_queue(post: Post) -> None:
    post.add()
    post.add(workspace_id="w2")
    for _ in range(3):
        for number in range(200):
            post.publish(id=f"{number}", payload={"n": number}, source=f"s{_}")
        post.step()
    post.publish(id="last")
    post.publish(id="other", workspace_id="w2")
    post.step()
    queues = {run.event_key: run.queue for run in post.runs()}
    assert (queues["id:last"], queues["id:other"]) == ("bulk", "main")
    assert len(post.handled(QueueKind.MAIN)) == 601
    assert len(post.handled(QueueKind.BULK)) == 1


def test_an_event_changes_its_subject(post: Post) -> None:
    post.publish("record.updated", {"recordId": "r1", "databaseId": "d1", "properties": {"status": "a"}})
    post.publish("record.updated", {"recordId": "r1", "properties": {"status": "b", "n": 1}})
    post.publish("message.created", {"conversation": {"id": "c1", "status": "open"}, "message": {"id": "m1"}})
    post.step()
    rows = {row.id: tree(row.data) for row in post.rows("SELECT id, data FROM subjects")}
    assert rows == {"r1": {"status": "b", "n": 1}, "c1": {"status": "open"}}


def test_a_repeated_batch_changes_no_subject(post: Post) -> None:
    post.publish("contact.updated", {"contact": {"id": "k1", "name": "Zoë"}})
    reading = post.stream.read(10, block_ms=1)
    post.intake.take(reading)
    before = post.rows("SELECT * FROM subjects")
    post.intake.take(reading)
    assert post.rows("SELECT * FROM subjects") == before


def test_two_matchers_split_the_stream_and_make_each_run_once(backends: Backends) -> None:
    shared = replace(backends, clock=SystemClock())
    posts = [open_post(shared, f"c{number}") for number in range(2)]
    posts[0].add()
    posts[0].add({"type": "RECORD_UPDATED"})
    for number in range(300):
        posts[0].publish(id=f"{number % 150}", payload={"n": number % 150})
        payload = {"recordId": f"r{number % 7}", "properties": {"n": number}}
        posts[0].publish("record.updated", payload)
    start = threading.Barrier(len(posts))
    failures: list[BaseException] = []

    def work(post: Post) -> None:
        start.wait()
        try:
            while post.step():
                pass
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(post,)) for post in posts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert len(posts[0].runs()) == 150 + 300
    assert sorted(posts[0].handled()) == sorted(run.id for run in posts[0].runs())
    assert posts[0].skipped("deduped") == 150
    newest = {row.id: tree(row.data)["n"] for row in posts[0].rows("SELECT id, data FROM subjects")}
    assert newest == {f"r{n}": max(m for m in range(300) if m % 7 == n) for n in range(7)}
    assert posts[0].pending() == 0


def refuse(post: Post, event_key: str) -> None:
    """Make SQL refuse one event's run, as it refuses values that it cannot hold."""
    if post.backends.database.dialect == "sqlite":
        statement = (
            "CREATE TRIGGER refused BEFORE INSERT ON automation_runs WHEN NEW.event_key = '{}'"
            " BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
    else:
        statement = "ALTER TABLE automation_runs ADD CHECK (event_key <> '{}')"
    with post.backends.database.begin() as conn:
        conn.exec_driver_sql(statement.format(event_key))


def test_what_sql_cannot_take_is_found_by_halving(post: Post) -> None:
    post.add()
    refuse(post, "id:e4")
    entries = [post.publish(id=f"e{number}") for number in range(9)]
    post.step()
    assert [run.event_key for run in post.runs()] == [f"id:e{n}" for n in range(9) if n != 4]
    assert post.handled() == [run.id for run in post.runs()]
    assert post.pending() == 0
    (dead,) = list_dead(post.backends.redis, post.backends.keys, 10)
    assert (dead.entry_id, dead.error, dead.fields["id"]) == (entries[4], "IntegrityError", "e4")
    assert dead.reason.startswith("cannot be stored: ")
    assert "INSERT" not in dead.reason


def test_a_missing_table_is_no_events_fault(post: Post) -> None:
    post.add()
    post.publish()
    post.step()
    with post.backends.database.begin() as conn:
        conn.exec_driver_sql("ALTER TABLE automation_runs RENAME TO elsewhere")
    post.publish()
    with pytest.raises(DBAPIError):
        post.step()
    assert post.pending() == 1
    assert post.health("entries_buried") == 0


def test_an_entry_that_was_handed_out_too_often_is_buried(post: Post) -> None:
    post.add()
    post.publish(id="e1")
    post.publish(id="e2")
    reading = post.stream.read(10, block_ms=1)
    first, second = reading.deliveries
    worn = replace(first, arrival=Arrival.AGAIN, times=6)
    nearly = replace(second, arrival=Arrival.AGAIN, times=5)
    post.intake.take(Reading((worn, nearly), reading.version))
    assert [run.event_key for run in post.runs()] == ["id:e2"]
    (dead,) = list_dead(post.backends.redis, post.backends.keys, 10)
    assert (dead.entry_id, dead.error) == (first.entry_id, "DeliveredTooOften")
    assert post.pending() == 0
