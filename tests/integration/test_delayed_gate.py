"""What a delayed run finds right before its first action, on both databases, in a real engine.

The last word on an episode is spoken after the claim: what a person did up to then stops the action.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from executors.contract import ActionResult, RunContext
from pipeline.settling import AGAIN_AFTER, NO_SETTLER, AlreadySaid, Settled, Settler, StandDown
from shared.db.types import read_instant, read_json
from shared.errors import FatalError, RetryableError
from shared.model.actions import ActionConfig
from shared.model.messages import Direction
from shared.model.runs import ClaimedRun
from shared.model.subjects import data
from shared.rules.talk import Talk
from shared.services.automations import pause
from shared.services.runs import ReplayFrom, replay
from tests.delayed_stage import (
    HOUR,
    LABEL,
    Stage,
    delete,
    drive,
    engine_of,
    flip,
    open_stage,
    run_of,
    say,
    wait,
    wait_for,
)
from tests.journals import gone
from tests.people import CALLER
from tests.rooms import HOOK

NOBODY_ANSWERED = Talk(None, None, None, None, None)
SECOND = timedelta(seconds=1)
ACTIONS = {"local": LABEL, "on the world": HOOK}

Deed = Callable[[Stage], object]
DEEDS: dict[str, Deed] = {
    "conditions_changed": lambda stage: stage.put(status="open"),
    "episode_moved": flip,
    "subject_gone": delete,
}


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    with open_stage(database_url, redis_url) as opened:
        yield opened


@dataclass
class Interrupted:
    """A settler before whose look something happens; it notes which runs it is asked about."""

    inner: Settler
    deed: Callable[[], object]
    asked: list[Sequence[ClaimedRun]]

    def stand_downs(self, runs: Sequence[ClaimedRun]) -> Mapping[str, StandDown]:
        self.asked.append(runs)
        self.deed()
        return self.inner.stand_downs(runs)

    def bars(self, conn: Connection, runs: Sequence[ClaimedRun]) -> Mapping[str, StandDown | AlreadySaid]:
        return self.inner.bars(conn, runs)

    def settle(self, conn: Connection, ended: Sequence[Settled], now: datetime) -> Counter[str]:
        return self.inner.settle(conn, ended, now)

    def tell(self, ended: Sequence[Settled]) -> None:
        self.inner.tell(ended)


@dataclass
class Hook:
    """What stands in for a webhook: it counts its calls, and fails as often as it is told to."""

    calls: int = 0
    failures: int = 0

    def __call__(self, config: ActionConfig, run: RunContext) -> ActionResult:
        self.calls += 1
        if self.calls <= self.failures:
            raise RetryableError("WEBHOOK_HTTP_RETRIABLE", "503")
        return ActionResult({"ok": True})


def fired(stage: Stage, *actions: Mapping[str, Any]) -> str:
    """Let the conversation c1 wait in its state until its run is made; give the row's id."""
    stage.put(status="pending")
    found = wait(stage, stage.rule(actions=list(actions) or [LABEL]))
    stage.after(4 * HOUR).sweep()
    assert stage.stands(found) == ("executed", None)
    return found


def labels(stage: Stage) -> Any:
    return data(stage.subject()).get("labels", [])


@pytest.mark.parametrize("kind", ACTIONS)
def test_an_episode_that_goes_on_lets_the_run_act(stage: Stage, kind: str) -> None:
    hook = Hook()
    found = fired(stage, ACTIONS[kind])
    drive(stage, engine_of(stage, {"SEND_WEBHOOK": hook}))
    assert (run_of(stage, found).status, run_of(stage, found).skip_reason) == ("SUCCEEDED", None)
    assert (labels(stage), hook.calls) == ((["stale-pending"], 0) if kind == "local" else ([], 1))
    assert stage.stands(found) == ("executed", None)
    assert stage.pending(found).ended_at is None


@pytest.mark.parametrize("moment", ["before the claim", "after the claim"])
@pytest.mark.parametrize("reason", DEEDS)
@pytest.mark.parametrize("kind", ACTIONS)
def test_what_happens_before_the_first_action_stops_it(
    stage: Stage, kind: str, reason: str, moment: str
) -> None:
    hook = Hook()
    found = fired(stage, ACTIONS[kind])
    statuses: list[str] = []

    def happens() -> None:
        statuses.append(run_of(stage, found).status)
        if moment == "after the claim":
            DEEDS[reason](stage)

    if moment == "before the claim":
        DEEDS[reason](stage)
    engine = engine_of(stage, {"SEND_WEBHOOK": hook}, settler=lambda inner: Interrupted(inner, happens, []))
    drive(stage, engine)
    run, row = run_of(stage, found), stage.pending(found)
    assert (statuses, hook.calls) == (["RUNNING"], 0)
    assert (run.status, run.skip_reason) == ("SUCCEEDED", reason)
    assert stage.stands(found) == ("skipped", reason)
    assert (row.ended_at, row.run_id) == (stage.clock.now(), run.id)
    assert stage.rows("SELECT position FROM run_actions") == []
    (attempt,) = stage.rows("SELECT outcome FROM run_attempts")
    assert attempt.outcome == "skipped"
    if reason != "subject_gone":
        assert labels(stage) == []


def test_the_log_says_which_condition_no_longer_holds(stage: Stage) -> None:
    found = fired(stage)
    stage.put(status="resolved")
    drive(stage, engine_of(stage))
    query = "SELECT message, data FROM automation_logs WHERE run_id = :id ORDER BY id"
    first, last = stage.rows(query, id=run_of(stage, found).id)
    assert (first.message, last.message) == ("run started", "run skipped: conditions_changed")
    (leaf,) = read_json(last.data)["failed"]
    assert (leaf["field"], leaf["wanted"], leaf["found"]) == ("conversation.status", "pending", "resolved")


@pytest.mark.parametrize("kind", ACTIONS)
def test_a_reply_after_the_claim_stops_the_follow_up(stage: Stage, kind: str) -> None:
    hook = Hook()
    stage.put(status="open")
    trigger = {"type": "MESSAGE_CREATED", "config": {}}
    rule = stage.rule(delay=60, conditions=None, trigger=trigger, actions=[ACTIONS[kind]])
    found = wait_for(stage, rule, say(stage, Direction.OUTGOING), NOBODY_ANSWERED)
    stage.after(HOUR).sweep()
    engine = engine_of(
        stage,
        {"SEND_WEBHOOK": hook},
        settler=lambda inner: Interrupted(inner, lambda: say(stage), []),
    )
    drive(stage, engine)
    assert (hook.calls, labels(stage)) == (0, [])
    assert run_of(stage, found).skip_reason == "episode_moved"
    assert stage.stands(found) == ("skipped", "episode_moved")


def test_a_run_whose_automation_was_paused_meanwhile_says_so_on_its_row(stage: Stage) -> None:
    found = fired(stage)
    pause(stage.backends, CALLER, "stale")
    drive(stage, engine_of(stage))
    assert run_of(stage, found).skip_reason == "inactive"
    assert stage.stands(found) == ("skipped", "rule_inactive")


def test_a_run_whose_row_is_gone_does_not_act(stage: Stage) -> None:
    fired(stage)
    stage.change("DELETE FROM pending_executions")
    drive(stage, engine_of(stage))
    (run,) = stage.runs()
    assert (run.status, run.skip_reason, labels(stage)) == ("SUCCEEDED", "episode_moved", [])


def test_an_attempt_before_any_action_was_done_is_looked_at_again(stage: Stage) -> None:
    hook = Hook(failures=1)
    found = fired(stage, HOOK)
    engine = engine_of(stage, {"SEND_WEBHOOK": hook})
    drive(stage, engine)
    assert (run_of(stage, found).status, hook.calls) == ("PENDING", 1)
    assert stage.stands(found) == ("executed", None)
    stage.put(status="open")
    stage.after(HOUR)
    drive(stage, engine)
    assert (run_of(stage, found).status, hook.calls) == ("SUCCEEDED", 1)
    assert stage.stands(found) == ("skipped", "conditions_changed")


def test_an_attempt_after_the_first_action_was_done_is_not_looked_at_again(stage: Stage) -> None:
    asked: list[Sequence[ClaimedRun]] = []
    hook = Hook(failures=1)
    found = fired(stage, LABEL, HOOK)
    engine = engine_of(
        stage, {"SEND_WEBHOOK": hook}, settler=lambda inner: Interrupted(inner, lambda: None, asked)
    )
    drive(stage, engine)
    assert (labels(stage), hook.calls, len(asked)) == (["stale-pending"], 1, 1)
    stage.put(status="open")
    stage.after(HOUR)
    drive(stage, engine)
    assert (run_of(stage, found).status, run_of(stage, found).skip_reason) == ("SUCCEEDED", None)
    assert (hook.calls, len(asked)) == (2, 1)
    assert stage.stands(found) == ("executed", None)


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_replay_is_looked_at_again(stage: Stage, goes_on: bool) -> None:
    def refuse(config: ActionConfig, run: RunContext) -> ActionResult:
        raise FatalError("WEBHOOK_HTTP_ERROR", "404")

    hook = Hook()
    found = fired(stage, HOOK)
    drive(stage, engine_of(stage, {"SEND_WEBHOOK": refuse}))
    run_id = run_of(stage, found).id
    assert run_of(stage, found).status == "FAILED"
    if not goes_on:
        stage.put(status="open")
    replay(stage.backends, CALLER, [run_id], ReplayFrom.FAILED_ACTION)
    drive(stage, engine_of(stage, {"SEND_WEBHOOK": hook}))
    assert (run_of(stage, found).status, hook.calls) == ("SUCCEEDED", int(goes_on))
    assert stage.stands(found) == (("executed", None) if goes_on else ("skipped", "conditions_changed"))


def test_a_set_of_local_runs_is_looked_at_as_one(stage: Stage) -> None:
    asked: list[Sequence[ClaimedRun]] = []
    rule = stage.rule()
    rows = []
    for number in range(20):
        stage.put(f"c{number}", status="pending")
        rows.append(wait(stage, rule, f"c{number}"))
    stage.after(4 * HOUR).sweep()
    stage.put("c3", status="open")
    engine = engine_of(stage, settler=lambda inner: Interrupted(inner, lambda: None, asked))
    drive(stage, engine)
    assert [len(runs) for runs in asked] == [20]
    assert [row for row in rows if stage.stands(row)[0] != "executed"] == [rows[3]]


def test_a_row_that_cannot_be_read_fails_its_own_run_only(stage: Stage) -> None:
    rule = stage.rule()
    rows = []
    for name in ("c1", "c2"):
        stage.put(name, status="pending")
        rows.append(wait(stage, rule, name))
    stage.after(4 * HOUR).sweep()
    stage.change("UPDATE pending_executions SET trigger_event = '{}' WHERE id = :id", id=rows[0])
    drive(stage, engine_of(stage))
    assert [run_of(stage, row).status for row in rows] == ["FAILED", "SUCCEEDED"]
    assert read_json(run_of(stage, rows[0]).error)["code"] == "UNEXPECTED"


@pytest.mark.parametrize("kind", ACTIONS)
def test_while_sql_does_not_answer_the_gate_the_run_goes_back_and_nothing_is_counted(
    stage: Stage, kind: str
) -> None:
    hook = Hook()
    found = fired(stage, ACTIONS[kind])
    away = iter([gone()])

    def fails() -> None:
        for error in away:
            raise error

    engine = engine_of(stage, {"SEND_WEBHOOK": hook}, settler=lambda inner: Interrupted(inner, fails, []))
    drive(stage, engine)
    run = run_of(stage, found)
    assert (run.status, run.retry_count, run.failures, hook.calls) == ("PENDING", 0, 0, 0)
    assert read_instant(run.next_attempt_at) == stage.clock.now() + AGAIN_AFTER
    stage.after(AGAIN_AFTER)
    drive(stage, engine)
    assert run_of(stage, found).status == "SUCCEEDED"


def test_without_a_settler_a_delayed_run_does_not_act(stage: Stage) -> None:
    found = fired(stage)
    drive(stage, engine_of(stage, settler=None))
    run = run_of(stage, found)
    assert (run.status, read_json(run.error)["code"], labels(stage)) == ("FAILED", NO_SETTLER, [])


def test_a_run_that_no_row_waits_for_is_not_looked_at(stage: Stage) -> None:
    asked: list[Sequence[ClaimedRun]] = []
    found = fired(stage)
    stage.change("UPDATE automation_runs SET source = 'event'")
    stage.rule(delay=None, conditions=None)
    drive(stage, engine_of(stage, settler=lambda inner: Interrupted(inner, lambda: None, asked)))
    assert (run_of(stage, found).status, asked) == ("SUCCEEDED", [])


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_run_that_is_driven_alone_is_looked_at_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    monkeypatch.setenv("REDIS_URL", str(stage.settings.redis_url))
    monkeypatch.setenv("DATABASE_URL", str(stage.settings.database_url))
    monkeypatch.setenv("LOG_LEVEL", "error")
    found = fired(stage)
    stage.change("UPDATE automation_runs SET crash_count = 1, retry_count = 1, failures = 1")
    if not goes_on:
        stage.put(status="open")
    drive(stage, engine_of(stage), timeout_s=30)
    run = run_of(stage, found)
    assert (run.status, run.skip_reason) == ("SUCCEEDED", None if goes_on else "conditions_changed")
    assert labels(stage) == (["stale-pending"] if goes_on else [])
    assert stage.stands(found) == (("executed", None) if goes_on else ("skipped", "conditions_changed"))


def test_a_row_that_has_another_run_by_now_is_not_corrected(stage: Stage) -> None:
    found = fired(stage)
    stage.change("UPDATE pending_executions SET run_id = 'another'")
    stage.put(status="open")
    drive(stage, engine_of(stage))
    assert [run.skip_reason for run in stage.runs()] == ["conditions_changed"]
    assert stage.stands(found) == ("executed", None)
