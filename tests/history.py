"""Histories for tests of retention: runs that ended when a test says, with all that belongs to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from sqlalchemy import text

from shared.db.history import Attempt, RunLog, insert_actions, insert_attempts, insert_logs
from shared.db.runs_new import insert_runs
from shared.ids import first_id
from shared.model.runs import ActionDone, Claim, LogLine, QueueKind
from tests.watchdog_stage import WORKSPACE, Stage, new_run_of

CHILDREN = ("automation_logs", "run_actions", "run_attempts")
DAY = timedelta(days=1)

_NUMBERS = count(1)


@dataclass(frozen=True)
class Runs:
    """Some runs of a test: when they were made and ended, seen from now, and how many lines each has."""

    number: int = 1
    made: timedelta = 31 * DAY
    ended: timedelta | None = 31 * DAY
    status: str = "SUCCEEDED"
    lines: int = 10


def id_at(at: datetime) -> str:
    """Make an id as it would have been made at this instant."""
    return f"{first_id(at)[:-12]}{next(_NUMBERS):012x}"


def add_runs(stage: Stage, automation_id: str, runs: Runs) -> list[str]:
    """Write runs with their logs, an action and an attempt each; give their ids."""
    now = stage.clock.now()
    made, ended = now - runs.made, None if runs.ended is None else now - runs.ended
    ids = [id_at(made) for _ in range(runs.number)]
    pattern = new_run_of(automation_id, 0, QueueKind.MAIN, made)
    written = [replace(pattern, id=run_id, source_id=run_id, root_run_id=run_id) for run_id in ids]
    lines = [
        RunLog(WORKSPACE, automation_id, run_id, LogLine("info", f"line {number}", made))
        for run_id in ids
        for number in range(runs.lines)
    ]
    action = ActionDone(1, "SEND_WEBHOOK", {"status": 200}, (), made, made)
    with stage.database.begin() as conn:
        insert_runs(conn, written)
        insert_logs(conn, lines)
        insert_actions(conn, [(Claim(run_id, 1), action) for run_id in ids])
        insert_attempts(
            conn, [Attempt(Claim(run_id, 1), "succeeded", None, "w", made, made) for run_id in ids]
        )
        conn.execute(
            text("UPDATE automation_runs SET status = :status, ended_at = :ended WHERE id = :id"),
            [{"id": run_id, "status": runs.status, "ended": ended and ended.isoformat()} for run_id in ids],
        )
    return ids


def counts(stage: Stage, tables: Sequence[str] = ("automation_runs", *CHILDREN)) -> Mapping[str, int]:
    """Count the rows of tables."""
    return {table: stage.rows(f"SELECT count(*) AS n FROM {table}")[0].n for table in tables}


def run_ids(stage: Stage) -> set[str]:
    """Give the ids of all runs that are there."""
    return {row.id for row in stage.rows("SELECT id FROM automation_runs")}


def orphans(stage: Stage) -> list[Any]:
    """Give the rows whose run is gone."""
    query = (
        "SELECT run_id FROM {} WHERE run_id IS NOT NULL AND run_id NOT IN (SELECT id FROM automation_runs)"
    )
    return [row for table in CHILDREN for row in stage.rows(query.format(table))]
