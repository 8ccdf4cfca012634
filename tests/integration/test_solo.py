"""A run under which a worker died is driven in a child process, and is given up at its third crash."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.engine import Engine
from pipeline.solo import cause_of
from tests.rooms import HOOK, NOTIFY, Room, start, tree
from tests.waiting import poll

Suspect = Callable[..., str]
KILL = "action.before_effect:kill9"
CHILD_S = 30.0


@pytest.fixture
def suspects(room: Room, engines: list[Engine], monkeypatch: pytest.MonkeyPatch) -> Suspect:
    """Have a run that has taken a worker down before driven by an engine; its child gets this environment."""
    room.owner()
    settings = room.parts.settings
    monkeypatch.setenv("REDIS_URL", str(settings.redis_url))
    monkeypatch.setenv("DATABASE_URL", str(settings.database_url))
    monkeypatch.setenv("LOG_LEVEL", "error")
    engine = start(room, engines)

    def driven(*actions: dict[str, Any], fault: str = "", **columns: Any) -> str:
        monkeypatch.setenv("KNOCKON_FAULT", fault)
        run_id = room.run(room.automation(*(actions or (NOTIFY,)), name="Poison"), {"name": "Ada"})
        room.set(run_id, **{"crash_count": 1, "retry_count": 1, "failures": 1, **columns})
        engine.take([run_id])
        return run_id

    return driven


def rested(room: Room, engine: Engine, run_id: str) -> Any:
    """Wait for the end of the child, and give the run's row."""
    assert engine.wait_idle(CHILD_S)
    return room.row(run_id)


def counts(row: Any) -> tuple[int, int, int]:
    return row.retry_count, row.failures, row.crash_count


def test_a_child_that_lives_finishes_the_run(room: Room, engines: list[Engine], suspects: Suspect) -> None:
    run_id = suspects()
    row = rested(room, engines[0], run_id)
    assert (row.status, row.lease) == ("SUCCEEDED", 1)
    [attempt] = room.all("SELECT * FROM run_attempts")
    assert attempt.outcome == "succeeded"
    assert attempt.owner != room.parts.owner
    assert room.one("SELECT title FROM notifications").title == "Hello Ada"


def test_a_child_that_dies_is_one_crash_more(room: Room, engines: list[Engine], suspects: Suspect) -> None:
    run_id = suspects(fault=KILL)
    row = rested(room, engines[0], run_id)
    assert (row.status, counts(row), row.lease_until) == ("PENDING", (2, 2, 2), None)
    attempt = room.one("SELECT * FROM run_attempts")
    assert (attempt.outcome, attempt.code) == ("crashed", "WORKER_CRASHED")
    assert "SIGKILL" in attempt.message
    assert room.all("SELECT * FROM notifications") == []
    head = poll(lambda: room.parts.redis.lrange("rq:queue:automations", 0, -1))
    assert len(head) == 1


def test_the_third_crash_is_a_dead_letter_told_of_once(
    room: Room, engines: list[Engine], suspects: Suspect
) -> None:
    run_id = suspects(fault=KILL, crash_count=2)
    row = rested(room, engines[0], run_id)
    assert (row.status, row.crash_count, tree(row.error)["code"]) == ("DEAD_LETTER", 3, "WORKER_CRASHED")
    assert "SIGKILL" in tree(row.error)["message"]
    notice = room.one("SELECT * FROM notifications")
    assert notice.title == 'Automation "Poison" failed (worker crash)'
    assert room.one("SELECT action FROM audit").action == "automation.worker_crashed"
    assert room.messages(run_id)[-1] == "run dead-lettered"
    poll(lambda: room.parts.redis.get(room.parts.keys.dead_letter("w1")) == b"1")
    engines[0].take([run_id])
    assert len(engines) == 1
    assert room.one("SELECT count(*) AS n FROM notifications").n == 1


def test_a_crash_without_a_retry_left_is_a_dead_letter_too(
    room: Room, engines: list[Engine], suspects: Suspect
) -> None:
    row = rested(room, engines[0], suspects(fault=KILL, crash_count=1, failures=8, retry_count=8))
    assert (row.status, row.crash_count) == ("DEAD_LETTER", 2)


def test_an_action_that_the_child_finished_counts_before_its_death(
    room: Room, engines: list[Engine], suspects: Suspect
) -> None:
    run_id = suspects(NOTIFY, NOTIFY, fault="action.before_effect@2:kill9", crash_count=2)
    row = rested(room, engines[0], run_id)
    assert (row.status, row.crash_count, row.failures) == ("PENDING", 1, 1)
    assert len(room.all("SELECT * FROM run_actions")) == 1
    assert room.one("SELECT count(*) AS n FROM notifications").n == 1


def test_a_child_whose_end_was_written_may_die_as_it_likes(
    room: Room, engines: list[Engine], suspects: Suspect
) -> None:
    row = rested(room, engines[0], suspects(fault="journal.after_commit:kill9"))
    assert (row.status, row.crash_count) == ("SUCCEEDED", 1)
    assert [found.outcome for found in room.all("SELECT outcome FROM run_attempts")] == ["succeeded"]


def test_a_child_whose_claim_was_taken_over_ends_without_a_word(
    room: Room, engines: list[Engine], suspects: Suspect
) -> None:
    run_id = suspects(HOOK, fault="run.before_guard:sleep:1")
    room.set(run_id, lease=7, owner="another")
    row = rested(room, engines[0], run_id)
    assert (row.status, row.lease, row.owner) == ("RUNNING", 7, "another")
    assert room.all("SELECT * FROM run_attempts") == []


@pytest.mark.parametrize("is_early", [True, False])
def test_a_child_is_asked_to_hand_back_when_its_parent_ends(
    room: Room, engines: list[Engine], suspects: Suspect, monkeypatch: pytest.MonkeyPatch, is_early: bool
) -> None:
    monkeypatch.setenv("SHUTDOWN_GRACE_S", "0.1")
    run_id = suspects(HOOK, fault="action.before_effect:sleep:60")
    if not is_early:
        poll(lambda: "run started" in room.messages(run_id), CHILD_S)
    engines.pop().stop(grace_s=CHILD_S)
    row = room.row(run_id)
    assert (row.status, counts(row)) == ("PENDING", (1, 1, 1))
    assert [found.outcome for found in room.all("SELECT outcome FROM run_attempts")] == ["handed_back"]


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (-signal.SIGKILL, "SIGKILL"),
        (-signal.SIGABRT, "SIGABRT"),
        (-signal.SIGSEGV, "SIGSEGV"),
        (1, "exit code 1"),
        (70, "exit code 70"),
        (-99, "signal 99"),
    ],
)
def test_a_death_is_named_by_its_signal_or_exit_code(code: int, cause: str) -> None:
    assert cause_of(code) == cause
