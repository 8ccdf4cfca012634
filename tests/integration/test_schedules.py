"""Schedules become runs, one a slot, on both databases: sweeps, edits, silence, and what cannot be read."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from pipeline.engine import Engine
from shared.db.types import read_instant, read_json
from shared.model.event_fields import format_instant
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from shared.services.automations import activate, apply_changes, delete, pause
from shared.services.definitions import Leftovers
from tests.listening import capture_logs
from tests.people import CALLER, definition
from tests.rooms import NOTIFY, OpenRoom, start
from tests.timekeeping import Timekeeper, at, open_timekeeper
from timers.reconcile import reconcile
from timers.schedules import BATCH, Sweep

START = "2026-03-01T12:00:00"
COPY_AUTOMATION = """
    INSERT INTO automations (id, workspace_id, key, name, status, version, definition, created_at, updated_at)
    SELECT CAST(:id AS text), workspace_id, CAST(:id AS text), name, status, version, definition, created_at,
        updated_at
    FROM automations WHERE key = 'tick'
"""
COPY_SCHEDULE = """
    INSERT INTO schedules (automation_id, workspace_id, cron, timezone, next_fire_at, updated_at)
    SELECT :id, workspace_id, 'never', timezone, next_fire_at, updated_at FROM schedules WHERE cron <> 'never'
"""


@pytest.fixture
def keeper(database_url: str, redis_url: str) -> Iterator[Timekeeper]:
    with open_timekeeper(database_url, redis_url, START) as opened:
        yield opened


def test_an_automation_fires_first_strictly_after_it_became_active(keeper: Timekeeper) -> None:
    automation_id = keeper.apply()
    assert keeper.next_fire(automation_id) == at("2026-03-01T12:01")
    keeper.sweep_at("2026-03-01T12:00:59")
    assert keeper.slots() == []
    keeper.sweep_at("2026-03-01T12:01")
    assert keeper.slots() == ["2026-03-01T12:01:00Z"]
    assert keeper.next_fire(automation_id) == at("2026-03-01T12:02")
    (row,) = keeper.rows("SELECT last_slot FROM schedules")
    assert read_instant(row.last_slot) == at("2026-03-01T12:01")


def test_the_run_of_a_slot_tells_when_and_by_which_cron(keeper: Timekeeper) -> None:
    automation_id = keeper.apply("0 9 * * *", "Europe/Paris")
    keeper.sweep_at("2026-03-02T08:00:05")
    (run,) = keeper.runs()
    event = read_json(run.input)
    assert (run.source, run.source_id) == ("schedule", f"{automation_id}:2026-03-02T08:00:00Z")
    assert (run.trigger_type, run.status, run.depth, run.root_run_id) == ("SCHEDULE", "PENDING", 0, run.id)
    assert (event["type"], event["occurredAt"]) == ("schedule", "2026-03-02T08:00:00Z")
    assert event["payload"] == {"firedAt": "2026-03-02T08:00:00Z", "cron": "0 9 * * *"}
    assert keeper.handles() == 1
    keeper.sweep()
    assert (len(keeper.runs()), keeper.handles()) == (1, 1)


@pytest.mark.parametrize("status", ["DRAFT", "PAUSED", "ARCHIVED"])
def test_only_what_is_active_has_a_schedule(keeper: Timekeeper, status: str) -> None:
    assert keeper.next_fire(keeper.apply(status=status)) is None
    assert keeper.rows("SELECT * FROM schedules") == []


def test_a_pause_ends_the_schedule_and_an_activation_begins_a_new_one(keeper: Timekeeper) -> None:
    automation_id = keeper.apply()
    keeper.move_to("2026-03-01T12:01:10")
    pause(keeper.backends, CALLER, "tick")
    keeper.sweep()
    assert (keeper.next_fire(automation_id), keeper.slots()) == (None, [])
    keeper.move_to("2026-03-01T12:05:00")
    activate(keeper.backends, CALLER, "tick")
    keeper.sweep()
    assert keeper.slots() == []
    assert keeper.next_fire(automation_id) == at("2026-03-01T12:06")


def test_what_is_deleted_pruned_or_no_longer_on_the_clock_fires_no_more(keeper: Timekeeper) -> None:
    for key in ("one", "two", "three"):
        keeper.apply(key=key)
    delete(keeper.backends, CALLER, "one")
    apply_changes(keeper.backends, CALLER, [definition("three")], Leftovers.DELETE)
    assert keeper.rows("SELECT * FROM schedules") == []
    keeper.sweep_at("2026-03-01T12:01:01")
    assert keeper.slots() == []


def test_an_edit_of_what_is_not_due_leads_to_the_next_slot_of_the_new_cron(keeper: Timekeeper) -> None:
    automation_id = keeper.apply("0 18 * * *")
    keeper.move_to("2026-03-01T12:30:00")
    keeper.apply("30 * * * *")
    assert keeper.next_fire(automation_id) == at("2026-03-01T13:30")


def test_an_edit_keeps_the_newest_of_many_due_slots_and_makes_none_in_the_past(keeper: Timekeeper) -> None:
    automation_id = keeper.apply("*/10 * * * *")
    keeper.move_to("2026-03-01T12:35:00")
    keeper.apply("*/4 * * * *")
    assert keeper.next_fire(automation_id) == at("2026-03-01T12:30")
    assert [(line["count"], line["slots"]) for line in keeper.missed()] == [
        (2, ["2026-03-01T12:10:00Z", "2026-03-01T12:20:00Z"])
    ]
    keeper.sweep()
    assert keeper.slots() == ["2026-03-01T12:30:00Z"]
    assert keeper.next_fire(automation_id) == at("2026-03-01T12:36")
    assert len(keeper.missed()) == 1


def test_two_sweeps_at_once_make_one_run_a_slot(keeper: Timekeeper) -> None:
    for number in range(3):
        keeper.apply(key=f"tick-{number}")
    others = [keeper, replace(keeper)]
    for minute in range(1, 6):
        keeper.move_to(f"2026-03-01T12:0{minute}:00")
        barrier = threading.Barrier(len(others))

        def sweep(each: Timekeeper, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(10)
            each.sweep()

        threads = [threading.Thread(target=sweep, args=(each,)) for each in others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        keeper.sweep()
    assert sorted(keeper.slots()) == [
        f"2026-03-01T12:0{minute}:00Z" for minute in range(1, 6) for _ in range(3)
    ]
    assert len({run.source_id for run in keeper.runs()}) == 15


def test_after_a_silence_the_newest_slot_fires_once_and_the_others_are_told(keeper: Timekeeper) -> None:
    keeper.apply()
    keeper.sweep_at("2026-03-01T12:01:00", "2026-03-01T12:04:30")
    assert keeper.slots() == ["2026-03-01T12:01:00Z", "2026-03-01T12:04:00Z"]
    assert keeper.missed() == [
        {
            "count": 2,
            "more": False,
            "first": "2026-03-01T12:02:00Z",
            "last": "2026-03-01T12:03:00Z",
            "slots": ["2026-03-01T12:02:00Z", "2026-03-01T12:03:00Z"],
        }
    ]


def test_after_a_silence_longer_than_the_catch_up_nothing_fires_late(keeper: Timekeeper) -> None:
    automation_id = keeper.apply("0 9 * * *")
    keeper.sweep_at("2026-03-02T10:00:01")
    assert keeper.slots() == []
    assert [line["slots"] for line in keeper.missed()] == [["2026-03-02T09:00:00Z"]]
    assert keeper.next_fire(automation_id) == at("2026-03-03T09:00")
    keeper.sweep()
    assert len(keeper.missed()) == 1


def test_a_year_of_silence_is_told_in_one_line(keeper: Timekeeper) -> None:
    automation_id = keeper.apply()
    keeper.sweep_at("2027-03-01T12:00:30")
    assert keeper.slots() == ["2027-03-01T12:00:00Z"]
    (line,) = keeper.missed()
    assert (line["first"], line["last"]) == ("2026-03-01T12:01:00Z", "2027-03-01T11:59:00Z")
    assert (line["more"], len(line["slots"])) == (True, 20)
    assert keeper.next_fire(automation_id) == at("2027-03-01T12:01")


def test_a_slot_that_has_its_run_gets_no_second_one(keeper: Timekeeper) -> None:
    automation_id = keeper.apply()
    keeper.sweep_at("2026-03-01T12:01:00")
    back = {"slot": at("2026-03-01T12:01").isoformat(), "id": automation_id}
    keeper.change("UPDATE schedules SET next_fire_at = :slot WHERE automation_id = :id", **back)
    keeper.sweep()
    assert keeper.slots() == ["2026-03-01T12:01:00Z"]
    assert keeper.handles() == 1
    assert keeper.next_fire(automation_id) == at("2026-03-01T12:02")


def test_a_row_that_cannot_be_read_stays_is_told_of_once_and_stops_no_other(keeper: Timekeeper) -> None:
    broken, whole = keeper.apply(key="broken"), keeper.apply(key="whole")
    keeper.change("UPDATE schedules SET timezone = 'Mars/Base' WHERE automation_id = :id", id=broken)
    keeper.move_to("2026-03-01T12:01:00")
    sweep = Sweep(keeper.backends, timedelta(hours=1))
    with capture_logs() as logs:
        sweep.pass_once()
        sweep.pass_once()
    assert [line["automation_id"] for line in logs if line["event"] == "schedule_unreadable"] == [broken]
    assert [run.automation_id for run in keeper.runs()] == [whole]
    assert keeper.next_fire(broken) == at("2026-03-01T12:01")
    assert keeper.backends.redis.get(keeper.backends.keys.count("schedules_unreadable")) == b"1"


def test_more_unreadable_rows_than_a_sweep_takes_at_once_hide_no_other(keeper: Timekeeper) -> None:
    whole = keeper.apply()
    copies = [{"id": f"broken-{number:03}"} for number in range(BATCH)]
    with keeper.backends.database.begin() as conn:
        conn.execute(text(COPY_AUTOMATION), copies)
        conn.execute(text(COPY_SCHEDULE), copies)
    keeper.sweep_at("2026-03-01T12:01:00")
    assert [run.automation_id for run in keeper.runs()] == [whole]


def test_while_redis_is_away_the_run_is_made_and_waits_for_its_handle(keeper: Timekeeper) -> None:
    keeper.apply()
    away = open_redis("unix:///nowhere/redis.sock")
    queue = HandleQueue(away, keeper.backends.keys)
    deaf = replace(keeper, backends=replace(keeper.backends, redis=away, queue=queue))
    keeper.move_to("2026-03-01T12:01:00")
    deaf.sweep()
    assert keeper.slots() == ["2026-03-01T12:01:00Z"]
    assert keeper.handles() == 0


def test_a_schedule_that_was_left_behind_does_not_fire(keeper: Timekeeper) -> None:
    automation_id = keeper.apply()
    keeper.change("UPDATE automations SET status = 'PAUSED' WHERE id = :id", id=automation_id)
    keeper.sweep_at("2026-03-01T12:01:00")
    assert keeper.slots() == []


def test_reconciling_makes_edits_and_drops_by_the_difference(keeper: Timekeeper) -> None:
    lost, other, blank = (keeper.apply(key=key) for key in ("lost", "other", "blank"))
    extra, ghost = keeper.apply(key="extra"), keeper.apply(key="ghost")
    keeper.apply(key="fine")
    keeper.change("DELETE FROM schedules WHERE automation_id = :id", id=lost)
    keeper.change("UPDATE schedules SET timezone = 'Asia/Tokyo' WHERE automation_id = :id", id=other)
    keeper.change("UPDATE schedules SET next_fire_at = NULL WHERE automation_id = :id", id=blank)
    keeper.change("UPDATE automations SET status = 'PAUSED' WHERE id = :id", id=extra)
    keeper.change("DELETE FROM automations WHERE id = :id", id=ghost)
    keeper.move_to("2026-03-01T12:00:30")
    with capture_logs() as logs:
        reconcile(keeper.backends)
        reconcile(keeper.backends)
    told = [line for line in logs if line["event"] == "schedules_reconciled"]
    assert [(line["made"], line["edited"], line["dropped"]) for line in told] == [(1, 2, 2)]
    rows = keeper.rows("SELECT timezone, next_fire_at FROM schedules")
    assert len(rows) == 4
    assert {row.timezone for row in rows} == {"UTC"}
    assert [keeper.next_fire(each) for each in (lost, other, blank)] == [at("2026-03-01T12:01")] * 3


def test_what_stands_still_is_told_of_until_it_does_not(keeper: Timekeeper) -> None:
    automation_id = keeper.apply()
    keeper.change("UPDATE schedules SET cron = 'never' WHERE automation_id = :id", id=automation_id)
    keeper.change(
        "UPDATE automations SET definition = :broken WHERE id = :id",
        broken='{"trigger": {"type": "SCHEDULE", "config": {"cron": "never"}}}',
        id=automation_id,
    )
    with capture_logs() as logs:
        keeper.move_to("2026-03-01T12:02:30")
        keeper.sweep()
        reconcile(keeper.backends)
        assert [line["automations"] for line in logs if line["event"] == "schedules_stand_still"] == [
            [automation_id]
        ]
        keeper.apply()
        keeper.sweep()
        logs.clear()
        reconcile(keeper.backends)
    assert logs == []
    assert keeper.slots() == ["2026-03-01T12:01:00Z"]


def test_a_flood_of_waiting_runs_sends_the_next_to_the_second_queue(keeper: Timekeeper) -> None:
    automation_id = keeper.apply()
    keeper.sweep_at("2026-03-01T12:01:00")
    (run,) = keeper.runs()
    columns = ", ".join(name for name in run._fields if name not in {"id", "source_id"})
    with keeper.backends.database.begin() as conn:
        copied = (
            f"SELECT CAST(:copy AS text), CAST(:copy AS text), {columns} FROM automation_runs WHERE id = :id"
        )
        statement = text(f"INSERT INTO automation_runs (id, source_id, {columns}) {copied}")
        conn.execute(statement, [{"copy": f"r-{number}", "id": run.id} for number in range(500)])
    keeper.sweep_at("2026-03-01T12:02:00")
    (newest,) = keeper.rows(
        "SELECT queue FROM automation_runs WHERE source_id = :id",
        id=f"{automation_id}:{format_instant(at('2026-03-01T12:02'))}",
    )
    assert newest.queue == "bulk"


def test_five_minutes_of_two_timers_and_two_workers_are_five_runs(
    open_here: OpenRoom, engines: list[Engine], database_url: str, redis_url: str
) -> None:
    rooms = [open_here(), open_here()]
    for room in rooms:
        start(room, engines)
    begin = datetime.now(UTC).replace(tzinfo=None).isoformat()
    with open_timekeeper(database_url, redis_url, begin) as keeper:
        rooms[0].owner()
        keeper.apply(actions=[NOTIFY])
        both = [keeper.timers(), keeper.timers()]
        for _ in range(300 // 20):
            keeper.clock.advance(timedelta(seconds=20))
            threads = [threading.Thread(target=each.tick) for each in both]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
        ids = [run.id for run in keeper.runs()]
        for engine in engines:
            engine.take(ids)
        assert all(engine.wait_idle(30) for engine in engines)
        assert len(ids) == 5
        assert [run.status for run in keeper.runs()] == ["SUCCEEDED"] * 5
        assert len(keeper.rows("SELECT id FROM notifications")) == 5
        assert len(keeper.rows("SELECT run_id FROM run_attempts")) == 5


def test_templates_see_when_it_fired_and_by_which_cron(
    open_here: OpenRoom, engines: list[Engine], database_url: str, redis_url: str
) -> None:
    room = open_here()
    engine = start(room, engines)
    with open_timekeeper(database_url, redis_url, START) as keeper:
        room.owner()
        seen = {"title": "{{ type }} {{ firedAt }} {{ cron }}"}
        keeper.apply("*/5 * * * *", actions=[{"type": "CREATE_NOTIFICATION", "config": seen}])
        keeper.sweep_at("2026-03-01T12:05:07")
        engine.take([run.id for run in keeper.runs()])
        assert engine.wait_idle(30)
        (notice,) = keeper.rows("SELECT title FROM notifications")
    assert notice.title == "schedule 2026-03-01T12:05:00Z */5 * * * *"
