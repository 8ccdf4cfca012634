"""A retention setting that nobody reads.

Elsewhere the setting was shown and sold, and nothing on the server read it: the log table reached 62 GB and
starved the dispatchers. Here the elected watchdog deletes what is over, by its end and not by its creation,
each run with all that belongs to it, and a pass that was killed is made up for by the next one.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.db.pending_lists import PendingQuery, list_pending
from shared.settings import Settings
from shared.time.clock import ManualClock, SystemClock
from tests.history import DAY, Runs, add_runs, counts, orphans, run_ids
from tests.listening import capture_logs
from tests.pending_rows import add_pending
from tests.watchdog_stage import Stage, close_stage, open_stage
from watchdog.retention import Pruner
from watchdog.service import Watchdog

ROOT = Path(__file__).resolve().parents[2]
BATCH = 500


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    opened = open_stage(database_url, redis_url)
    yield opened
    close_stage(opened)


def prune(stage: Stage, days: int = 30) -> dict[str, int]:
    """Do a whole pass, as the clock stands still; give what its log line tells."""
    settings = Settings(_env_file=None, retention_days=days)
    with capture_logs() as logs:
        Pruner(replace(stage.parts, settings=settings), BATCH).take_turn()
    told = [line for line in logs if line["event"] == "history_pruned"]
    return {key: value for line in told for key, value in line.items() if isinstance(value, int)}


def keep(stage: Stage, automation_id: str) -> set[str]:
    """Write what must be left: younger, live and dead runs, and those that took long to end."""
    kinds = (
        Runs(number=100, made=29 * DAY, ended=29 * DAY),
        Runs(status="PENDING", made=45 * DAY, ended=None),
        Runs(status="RUNNING", made=45 * DAY, ended=None),
        Runs(made=45 * DAY, ended=10 * DAY),
        Runs(status="DEAD_LETTER", made=31 * DAY, ended=31 * DAY),
        Runs(status="FAILED", made=31 * DAY, ended=30 * DAY - timedelta(minutes=1)),
    )
    return {run_id for kind in kinds for run_id in add_runs(stage, automation_id, kind)}


def test_what_ended_before_the_days_is_gone_with_all_that_belongs_to_it_and_nothing_else(
    stage: Stage,
) -> None:
    automation_id = stage.automation()
    kept = keep(stage, automation_id)
    before = counts(stage)
    add_runs(stage, automation_id, Runs(number=1_500))
    add_runs(stage, automation_id, Runs(number=400, status="FAILED", made=60 * DAY, ended=32 * DAY))
    add_runs(stage, automation_id, Runs(number=99, status="CANCELLED"))
    add_runs(stage, automation_id, Runs(status="DEAD_LETTER", made=91 * DAY, ended=91 * DAY))
    assert prune(stage) == {
        "automation_runs": 2_000,
        "automation_logs": 20_000,
        "run_actions": 2_000,
        "run_attempts": 2_000,
    }
    assert run_ids(stage) == kept
    assert counts(stage) == before
    assert orphans(stage) == []
    assert prune(stage) == {}


def test_another_setting_changes_the_next_pass(stage: Stage) -> None:
    automation_id = stage.automation()
    kept = keep(stage, automation_id)
    assert prune(stage) == {}
    assert prune(stage, days=7)["automation_runs"] == 103
    assert {stage.run(run_id).status for run_id in run_ids(stage)} == {"PENDING", "RUNNING"}
    assert run_ids(stage) < kept
    assert orphans(stage) == []


def test_what_still_waits_stays_and_so_does_what_keeps_an_episode_from_firing_twice(stage: Stage) -> None:
    automation_id, now = stage.automation(), stage.clock.now()
    ended = {"status": "executed", "ended_at": now - 31 * DAY}
    given: dict[str, dict[str, Any]] = {
        "armed 40 days ago, due tomorrow": {"created_at": now - 40 * DAY, "due_at": now + DAY},
        "ran 40 days ago, still so": {**ended, "due_at": now - 40 * DAY, "ended_at": None},
        "ended lately": {**ended, "ended_at": now - 29 * DAY},
    }
    with stage.parts.database.begin() as conn:
        for name, values in given.items():
            add_pending(conn, name, automation_id, **values)
        for number in range(BATCH + 1):
            add_pending(conn, f"over-{number}", automation_id, **ended)
    assert prune(stage) == {"pending_executions": BATCH + 1}
    with stage.parts.database.read() as conn:
        left = {row.id for row in list_pending(conn, PendingQuery("w1", 10))}
    assert left == given.keys()


def test_a_run_that_is_replayed_meanwhile_is_left_alone(stage: Stage) -> None:
    (run_id,) = add_runs(stage, stage.automation(), Runs(status="FAILED"))
    pruner = Pruner(replace(stage.parts, clock=HastyClock(stage.clock.now())), BATCH)
    pruner.take_turn()
    stage.write("UPDATE automation_runs SET status = 'PENDING', ended_at = NULL WHERE id = :id", id=run_id)
    for _ in range(20):
        pruner.take_turn()
    assert run_ids(stage) == {run_id}
    assert counts(stage)["automation_logs"] == 10


def test_a_pass_goes_on_in_turns_and_the_watchdog_does_its_other_duties(stage: Stage) -> None:
    add_runs(stage, stage.automation(), Runs(number=600))
    claim = stage.running()
    clock = HastyClock(stage.clock.now())
    watchdog = Watchdog(replace(stage.parts, clock=clock))
    seen = set[int]()
    for _ in range(100):
        watchdog.tick()
        clock.advance(timedelta(seconds=2))
        seen.add(len(run_ids(stage)))
    assert len(seen) > 2
    assert stage.run(claim.run_id).status == "PENDING"
    assert run_ids(stage) == {claim.run_id}


def test_a_run_with_more_rows_than_a_transaction_takes_is_deleted_too(stage: Stage) -> None:
    add_runs(stage, stage.automation(), Runs(lines=1_234))
    assert prune(stage)["automation_logs"] == 1_234
    assert set(counts(stage).values()) == {0}
    assert orphans(stage) == []


def test_a_watchdog_killed_between_two_batches_leaves_the_rest_to_the_next(
    stage: Stage, database_url: str, redis_url: str, tmp_path: Path
) -> None:
    stage.clock.advance(SystemClock().now() - stage.clock.now())
    automation_id = stage.automation()
    kept = keep(stage, automation_id)
    before = counts(stage)
    add_runs(stage, automation_id, Runs(number=1_000))
    code = (
        "from shared.settings import load_settings as load; from watchdog.service import serve; serve(load())"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "KNOCKON_FAULT": "retention.between_batches@2:kill9",
    }
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=tmp_path)
    assert process.wait(60) == -signal.SIGKILL
    left = len(run_ids(stage) - kept)
    assert 0 < left < 1_000
    assert orphans(stage) == []
    assert kept < run_ids(stage)
    assert prune(stage)["automation_runs"] == left
    woken = {"automation_logs": before["automation_logs"] + 1}  # it also told that it woke the one that waits
    assert counts(stage) == {**before, **woken}
    assert run_ids(stage) == kept


class HastyClock(ManualClock):
    """A clock by which every look at it takes a turn's time."""

    def monotonic(self) -> float:
        self.advance(timedelta(seconds=0.6))
        return super().monotonic()
