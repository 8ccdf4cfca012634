"""The metrics: each is told, from what stands in Redis and SQL, at a cost that does not grow with them."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text

from matcher.intake import Intake
from shared.beats import Pulse
from shared.db.alerts import WAITING
from shared.db.engine import open_database
from shared.db.gauges import COUNTED, COUNTS, LOOKED_AT, OLDEST_WAITING
from shared.db.idle_waiting import IDLE_OVERDUE
from shared.db.locks import WATCHDOG, take_lock
from shared.db.pending_moves import OVERDUE
from shared.db.people import insert_workspace
from shared.db.sql import Sql, sql
from shared.db.tables_idle import IDLE_STEPS
from shared.db.types import write_instant
from shared.keys import delayed_key, idle_key
from shared.metrics.exposition import KEPT_S, Metrics
from shared.metrics.samples import METRICS
from shared.model.idle_steps import IdleResult
from shared.model.runs import QueueKind
from shared.observations import Measure, Observations
from shared.redis_port import open_redis
from shared.services.backends import Backends
from shared.time.clock import ManualClock
from tests.any_rows import add_row
from tests.commanding import Knockon
from tests.matching import open_post
from tests.pending_rows import add_pending
from tests.people import NOW
from tests.rooms import Room

BIG = 20_000

Told = Mapping[tuple[str, tuple[str, ...]], float]


def told(metrics: Metrics) -> Told:
    """Give each sample by its name and the values of its labels, in the order of their names."""
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


def look(backends: Backends) -> Told:
    return told(Metrics(backends))


def test_every_metric_is_told_with_its_kind_and_meaning(backends: Backends) -> None:
    found = {
        family.name + ("_total" if family.type == "counter" else ""): family
        for family in text_string_to_metric_families(Metrics(backends).text().decode())
    }
    assert {name: (family.type, family.documentation) for name, family in found.items()} == {
        name: (metric.kind, metric.help) for name, metric in METRICS.items()
    }
    for name, family in found.items():
        labels = set(METRICS[name].labels) | ({"le"} if family.type == "histogram" else set())
        assert all(set(sample.labels) <= labels for sample in family.samples)


def test_no_metric_has_a_label_without_bound() -> None:
    bounded = {"part", "version", "queue", "kind", "trigger_type", "reason", "type", "outcome", "result"}
    assert {label for metric in METRICS.values() for label in metric.labels} == bounded


def test_counters_are_those_of_redis(backends: Backends) -> None:
    keys = backends.keys
    counted = {
        keys.matched("EVENT"): 5,
        keys.skipped("deduped"): 2,
        keys.action("SEND_WEBHOOK", "failed"): 3,
        keys.count("dead_letters"): 4,
        keys.count("stream_gaps"): 1,
        delayed_key(keys, "armed"): 6,
        delayed_key(keys, "skipped:episode_moved"): 7,
        idle_key(keys, IdleResult.RESET): 8,
    }
    for key, value in counted.items():
        backends.redis.incr(key, value)
    found = look(backends)
    assert found["knockon_matched_total", ("EVENT",)] == 5
    assert found["knockon_skipped_total", ("deduped",)] == 2
    assert found["knockon_skipped_total", ("expired",)] == 0
    assert found["knockon_actions_total", ("failed", "SEND_WEBHOOK")] == 3
    assert found["knockon_delayed_total", ("armed",)] == 6
    assert found["knockon_delayed_skipped_total", ("episode_moved",)] == 7
    assert found["knockon_idle_steps_total", ("reset",)] == 8
    assert found["knockon_idle_steps_total", ("fired",)] == 0
    assert found["knockon_dead_letters_total", ()] == 4
    assert found["knockon_stream_gaps_total", ()] == 1


def test_durations_are_counted_below_each_bound(backends: Backends) -> None:
    observed = Observations(backends.keys)
    for seconds in (0.001, 0.2, 0.2, 7200):
        observed.add(Measure.RUN_FAILED, timedelta(seconds=seconds))
    with backends.redis.pipeline(transaction=False) as pipe:
        observed.add_to(pipe)
        pipe.execute()
    found = look(backends)
    name = "knockon_run_duration_seconds"
    below = {bound: found[f"{name}_bucket", (bound, "failed")] for bound in ("0.005", "0.1", "0.25", "+Inf")}
    assert below == {"0.005": 1, "0.1": 1, "0.25": 3, "+Inf": 4}
    assert found[f"{name}_count", ("failed",)] == 4
    assert found[f"{name}_sum", ("failed",)] == pytest.approx(7200.401)
    assert found[f"{name}_count", ("succeeded",)] == 0


def test_the_stream_is_told_by_its_oldest_entry_that_nobody_has_finished(backends: Backends) -> None:
    assert look(backends)["knockon_stream_lag_seconds", ()] == 0
    late = datetime.now(UTC) - timedelta(hours=1)
    for ms in (0, 1_800_000):
        entry_id = f"{int(late.timestamp() * 1000) + ms}-0"
        backends.redis.xadd(backends.keys.stream, {"type": "order.placed"}, id=entry_id)
    assert _stream(backends) == [2, 0, 3600]
    post = open_post(backends)
    reading = post.stream.read(1, block_ms=1)
    assert _stream(backends) == [2, 1, 3600]
    Intake(backends, timedelta(days=36_500)).take(reading)
    assert _stream(backends) == [2, 0, 1800]
    post.step()
    assert _stream(backends) == [2, 0, 0]


def _stream(backends: Backends) -> list[int]:
    """Give the entries, those under way, and the age of the oldest that is not finished, to the minute."""
    found = look(backends)
    names = ("entries", "pending_entries", "lag_seconds")
    *counts, age_s = (found[f"knockon_stream_{name}", ()] for name in names)
    return [*map(int, counts), round(age_s / 60) * 60]


def test_the_lag_is_told_where_redis_knows_it(backends: Backends) -> None:
    sample = ("knockon_stream_lag_entries", ())
    post = open_post(backends)
    post.publish()
    post.step()
    assert look(backends)[sample] == 0
    post.publish()
    knows = "lag" in backends.redis.xinfo_groups(backends.keys.stream)[0]
    assert look(backends).get(sample) == (1 if knows else None)


def test_pending_executions_are_told_and_how_late_the_first_is(backends: Backends) -> None:
    now = backends.clock.now()
    with backends.database.begin() as conn:
        add_pending(conn, "late", "a1", due_at=now - timedelta(minutes=5))
        add_pending(conn, "early", "a1", due_at=now + timedelta(minutes=5))
        add_pending(conn, "over", "a1", due_at=now, status="executed")
    found = look(backends)
    assert found["knockon_pending_executions", ()] == 2
    assert found["knockon_due_rows", ("delayed",)] == 1
    assert found["knockon_pending_executions_late_seconds", ()] == pytest.approx(300, abs=60)


def test_idle_steps_are_told_and_how_late_the_first_is(backends: Backends) -> None:
    now = backends.clock.now()
    rows = {"late": (-5, "pending"), "early": (5, "pending"), "over": (0, "fired")}
    with backends.database.begin() as conn:
        for id_, (minutes, status) in rows.items():
            due_at = now + timedelta(minutes=minutes)
            add_row(conn, IDLE_STEPS, id=id_, conversation_id=id_, due_at=due_at, status=status)
    found = look(backends)
    assert found["knockon_idle_steps_waiting", ()] == 2
    assert found["knockon_due_rows", ("idle",)] == 1
    assert found["knockon_idle_steps_late_seconds", ()] == pytest.approx(300, abs=60)


def test_queues_and_processes_are_told(backends: Backends) -> None:
    backends.queue.push(QueueKind.BULK, ["r1"], NOW - timedelta(seconds=90))
    with backends.redis.pipeline(transaction=False) as pipe:
        waits = [(QueueKind.MAIN, f"r{n}", NOW + timedelta(seconds=n)) for n in (-1, 5)]
        backends.queue.schedule_in(pipe, waits)
        Pulse(backends.keys, "timers", "t1").beat(pipe, NOW)
        pipe.set("rq:suspended", 1)
        pipe.execute()
    with backends.database.begin() as conn:
        take_lock(conn, WATCHDOG, "d1", now=NOW, hold=timedelta(seconds=15))
    found = look(backends)
    assert found["knockon_queue_handles", ("bulk",)] == 1
    assert found["knockon_queue_oldest_seconds", ("bulk",)] == 90
    assert found["knockon_queue_oldest_seconds", ("main",)] == 0
    assert found["knockon_retries_waiting", ()] == 2
    assert found["knockon_due_rows", ("retries",)] == 1
    assert found["knockon_queue_suspended", ()] == 1
    processes = {
        part: found["knockon_processes", (part,)]
        for part in ("api", "matcher", "worker", "scheduler", "timers", "watchdog")
    }
    assert processes == {"api": 0, "matcher": 0, "worker": 0, "scheduler": 0, "timers": 1, "watchdog": 1}


def test_runs_are_told_and_those_that_wait_for_their_time_do_not_count_as_late(
    room: Room, backends: Backends
) -> None:
    hour = timedelta(hours=1)
    automation, paused = room.automation(), room.automation(status="PAUSED")
    room.change("UPDATE automations SET status = 'PAUSED' WHERE id = :id", id=paused.id)
    running, retrying, stopped, waiting = (
        room.run(each, at=NOW - age)
        for each, age in (
            (automation, 5 * hour),
            (automation, 4 * hour),
            (paused, 3 * hour),
            (automation, 2 * hour),
        )
    )
    room.set(running, status="RUNNING", lease=1, lease_until=write_instant(NOW))
    room.set(retrying, lease=1, next_attempt_at=write_instant(NOW + hour))
    room.set(stopped, lease=1)
    found = look(backends)
    assert found["knockon_runs_running", ()] == 1
    assert found["knockon_runs_pending", ()] == 3
    assert found["knockon_runs_pending_oldest_seconds", ()] == 7200
    room.set(waiting, status="SUCCEEDED")
    assert look(backends)["knockon_runs_pending_oldest_seconds", ()] == 0


def test_what_is_due_and_not_sent_is_told(backends: Backends) -> None:
    with backends.database.begin() as conn:
        for number, due in enumerate((NOW - timedelta(seconds=1), NOW + timedelta(seconds=1))):
            values = {"id": f"a{number}", "due": write_instant(due), "now": write_instant(NOW)}
            conn.execute(
                text(
                    "INSERT INTO schedules (automation_id, workspace_id, cron, timezone, next_fire_at,"
                    " updated_at) VALUES (:id, 'w1', '* * * * *', 'UTC', :due, :now)"
                ),
                values,
            )
            conn.execute(
                text(
                    "INSERT INTO outbox (id, workspace_id, fields, created_at) VALUES (:id, 'w1', '{}', :due)"
                ),
                {"id": f"o{number}", "due": values["due"]},
            )
        conn.execute(
            text(
                "INSERT INTO alerts (id, workspace_id, fingerprint, run_id, title, body, code, target,"
                " created_at) VALUES ('x', 'w1', 'f', 'r', 't', 'b', 'C', 't', :at)"
            ),
            {"at": write_instant(NOW - timedelta(minutes=7))},
        )
    found = look(backends)
    assert found["knockon_due_rows", ("schedules",)] == 1
    assert found["knockon_outbox_unsent", ()] == 2
    assert found["knockon_outbox_oldest_seconds", ()] == 1
    assert found["knockon_alerts_waiting", ()] == 1
    assert found["knockon_alerts_oldest_seconds", ()] == 420


def test_without_redis_what_sql_knows_is_told(backends: Backends) -> None:
    nowhere = open_redis("unix:///nowhere/no-such.sock")
    found = look(replace(backends, redis=nowhere))
    assert (found["knockon_up", ("redis",)], found["knockon_up", ("sql",)]) == (0, 1)
    assert found["knockon_runs_pending", ()] == 0
    assert ("knockon_stream_entries", ()) not in found


def test_without_sql_what_redis_knows_is_told(backends: Backends) -> None:
    nowhere = open_database("sqlite:////nowhere/no-such.db")
    found = look(replace(backends, database=nowhere))
    assert (found["knockon_up", ("redis",)], found["knockon_up", ("sql",)]) == (1, 0)
    assert found["knockon_stream_entries", ()] == 0
    assert ("knockon_runs_pending", ()) not in found


def test_a_look_is_kept_for_a_few_seconds(backends: Backends) -> None:
    clock = ManualClock(NOW)
    metrics = Metrics(replace(backends, clock=clock))
    sample = ("knockon_dead_letters_total", ())
    assert told(metrics)[sample] == 0
    backends.redis.incr(backends.keys.count("dead_letters"))
    clock.advance(timedelta(seconds=KEPT_S - 0.1))
    assert told(metrics)[sample] == 0
    clock.advance(timedelta(seconds=0.2))
    assert told(metrics)[sample] == 1


def test_an_event_is_timed_from_its_entry_to_its_run(backends: Backends) -> None:
    clock = ManualClock(datetime.now(UTC) + timedelta(seconds=20))
    post = open_post(replace(backends, clock=clock))
    post.add()
    post.publish()
    post.step()
    found = look(backends)
    assert found["knockon_event_to_run_seconds_count", ()] == 1
    assert found["knockon_event_to_run_seconds_sum", ()] == pytest.approx(20, abs=5)


def test_the_command_prints_them(knockon: Knockon, database_url: str) -> None:
    database = open_database(database_url)
    with database.begin() as conn:
        insert_workspace(conn, "w1", "One", now=NOW)
    database.dispose()
    said = knockon("metrics").stdout
    assert '\nknockon_up{part="sql"} 1.0\n' in said
    assert said.startswith("# HELP knockon_up ")


CROWD = """
INSERT INTO automation_runs (id, workspace_id, automation_id, source, source_id, trigger_type, status, input,
    depth, root_run_id, retry_count, failures, crash_count, lease, lease_until, queue, enqueued_at,
    next_attempt_at, created_at)
SELECT 'r' || i, 'w1', 'a' || i, 'event', 'e' || i, 'EVENT',
    CASE i % 10 WHEN 0 THEN 'PENDING' WHEN 1 THEN 'RUNNING' ELSE 'SUCCEEDED' END, '{}',
    0, 'r' || i, 0, 0, 0, 1, NOW, 'main', NOW, NOW, NOW FROM n;
INSERT INTO automations (id, workspace_id, key, name, status, version, definition, created_at, updated_at)
SELECT 'a' || i, 'w1', 'k' || i, 'n', 'PAUSED', 1, '{}', NOW, NOW FROM n;
INSERT INTO schedules (automation_id, workspace_id, cron, timezone, next_fire_at, updated_at)
SELECT 'a' || i, 'w1', '* * * * *', 'UTC', LATER, NOW FROM n;
INSERT INTO outbox (id, workspace_id, fields, created_at, sent_at)
SELECT 'o' || i, 'w1', '{}', NOW, NOW FROM n;
INSERT INTO alert_sends (id, workspace_id, group_id, channel, target, message, attempts, created_at, status)
SELECT 's' || i, 'w1', 'g', 'mail', 't', '{}', 1, NOW, 'sent' FROM n;
INSERT INTO alert_groups (id, workspace_id, fingerprint, title, body, code, target, run_id, count, told,
    times, first_at, last_at, tellings, automations)
SELECT 'g' || i, 'w1', 'f' || i, 't', 'b', 'C', 't', 'r', 1, 1, 1, NOW, NOW, '{}', '{}' FROM n;
INSERT INTO pending_executions (id, workspace_id, automation_id, subject_type, subject_id, anchor, anchor_ms,
    anchor_seq, trigger_event, episode_key, started_at, due_at, status, version, armed_at, ended_at,
    created_at, updated_at)
SELECT 'p' || i, 'w1', 'a' || i, 'conversation', 'c' || i, 'state', 1, 0, '{}', 's', NOW,
    CASE i % 1000 WHEN 0 THEN NOW ELSE LATER END,
    CASE i % 10 WHEN 0 THEN 'pending' ELSE 'executed' END, 1, NOW, NOW, NOW, NOW FROM n;
INSERT INTO idle_steps (id, workspace_id, conversation_id, sequence_id, rule, step_index, step_count, action,
    anchor_message_id, anchor_ms, anchor_seq, due_at, status, version, created_at, updated_at)
SELECT 'i' || i, 'w1', 'c' || i, 'i' || i, 'agent', 0, 1, 'resolve', 'm', 1, 0,
    CASE i % 1000 WHEN 0 THEN NOW ELSE LATER END,
    CASE i % 10 WHEN 0 THEN 'pending' ELSE 'fired' END, 1, NOW, NOW FROM n
"""
WHOLE = re.compile(r"Seq Scan on|^SCAN (?!.*INDEX)")
SHORT = re.compile(r"\b(k|alerts|CONSTANT)\b")
SERIES = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {BIG}) "


@pytest.fixture
def crowded(backends: Backends) -> Backends:
    """Give a database with 20,000 rows in each table that is looked at."""
    now, later = (literal(backends, at) for at in (NOW, NOW + timedelta(days=1)))
    with backends.database.begin() as conn:
        for statement in CROWD.replace("NOW", now).replace("LATER", later).split(";"):
            conn.execute(text(SERIES + statement))
        conn.execute(text("ANALYZE"))
    return backends


def literal(backends: Backends, at: datetime) -> str:
    kind = "text" if backends.database.dialect == "sqlite" else "timestamptz"
    return f"CAST('{write_instant(at)}' AS {kind})".replace(":", r"\:")


def test_no_table_is_read_as_a_whole_and_what_is_there_is_counted(crowded: Backends) -> None:
    assert whole_reads(crowded, COUNTS, OLDEST_WAITING, WAITING, OVERDUE, IDLE_OVERDUE) == []
    assert len(whole_reads(crowded, sql("SELECT r.id FROM automation_runs r WHERE r.depth = 7"))) == 1
    found = look(crowded)
    assert found["knockon_runs_running", ()] == BIG / 10
    assert found["knockon_runs_pending", ()] == BIG / 10
    assert found["knockon_runs_pending_oldest_seconds", ()] == 0
    assert found["knockon_pending_executions", ()] == BIG / 10
    assert found["knockon_due_rows", ("delayed",)] == BIG / 1_000
    assert found["knockon_idle_steps_waiting", ()] == BIG / 10
    assert found["knockon_due_rows", ("idle",)] == BIG / 1_000
    assert (found["knockon_outbox_unsent", ()], found["knockon_due_rows", ("schedules",)]) == (0, 0)


def whole_reads(backends: Backends, *statements: Sql) -> list[str]:
    """Give the lines of the plans that read a table as a whole, but for `alerts`, which is short."""
    is_sqlite = backends.database.dialect == "sqlite"
    values = {"now": write_instant(NOW), "most": COUNTED, "looked_at": LOOKED_AT}
    plans: list[str] = []
    with backends.database.read() as conn:
        for each in statements:
            query = (each.sqlite if is_sqlite else each.postgresql).text
            given = {name: value for name, value in values.items() if f":{name}" in query}
            explain = "EXPLAIN QUERY PLAN " if is_sqlite else "EXPLAIN "
            plans += [str(row[-1]) for row in conn.execute(text(explain + query), given)]
    return [line for line in plans if WHOLE.search(line) and not SHORT.search(line)]
