"""The life of a run as a story: which records it yields, in which order, and where it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from executors.classify import Classification
from pipeline.drive import ActionFailed, Performed, Step, life
from pipeline.plans import Plan
from pipeline.settling import Stopped
from pipeline.verdicts import Record, Standing, Verdict
from shared.errors import FatalError, RetryableError
from shared.model.moves import SkipReason
from shared.model.runs import (
    ActionDone,
    ClaimedRun,
    DeadLettered,
    Failed,
    HandedBack,
    LogLine,
    Retried,
    RunSource,
    Succeeded,
)
from tests.runs import HOOK, LOCAL, NOW, claimed, done, event, plan

FATAL = Classification(retryable=False, code="WEBHOOK_HTTP_ERROR", message="404")
AGAIN = Classification(retryable=True, code="WEBHOOK_HTTP_RETRIABLE", message="503")


@dataclass
class FakeStage:
    """Performs by a list of results, one an action; what is missing succeeds with its position."""

    results: dict[int, Classification] = field(default_factory=dict)
    ending: bool = False
    performed: list[int] = field(default_factory=list)
    scopes: list[Mapping[str, Any]] = field(default_factory=list)
    notes: list[Record] = field(default_factory=list)
    stopped: Stopped | None = None
    asked: list[str] = field(default_factory=list)

    def now(self) -> datetime:
        return NOW

    def depth_max(self) -> int:
        return 5

    def is_ending(self) -> bool:
        return self.ending

    def note(self, record: Record) -> None:
        self.notes.append(record)

    def at_gate(self, run: ClaimedRun) -> Stopped | None:
        self.asked.append(run.claim.run_id)
        return self.stopped

    def perform(self, step: Step, scope: Mapping[str, Any]) -> Performed:
        at = step.action.position
        self.performed.append(at)
        self.scopes.append(scope)
        if at in self.results:
            return Performed(ActionFailed(self.results[at]), (LogLine("warning", "own line", NOW),))
        return Performed(ActionDone(at, step.action.type, {"n": at}, (), NOW, NOW))


def lived(run: ClaimedRun, planned: Plan, stage: FakeStage, verdicts: Sequence[Verdict] = ()) -> list[Record]:
    """Let a life tell its records; each is answered by the next verdict, or by WRITTEN with its output."""
    story = life(run, planned, stage)
    answers = iter(verdicts)
    records: list[Record] = []
    record = next(story, None)
    while record is not None:
        records.append(record)
        output = record.done.output if record.done else {}
        try:
            record = story.send(next(answers, Verdict(Standing.WRITTEN, output)))
        except StopIteration:
            record = None
    return records


def said(*records: Record) -> list[str]:
    return [line.message for record in records for line in record.logs]


def test_each_action_is_a_record_and_the_last_one_ends_the_run() -> None:
    stage = FakeStage()
    records = lived(claimed(), plan(LOCAL, LOCAL), stage)
    assert [record.done.position for record in records if record.done] == [1, 2]
    assert [record.outcome for record in records] == [
        None,
        Succeeded(None, {"actions": {"1": {"n": 1}, "2": {"n": 2}}}),
    ]
    assert said(*records) == [
        "run started",
        f"action 1/2 {LOCAL} started",
        f"action 1/2 {LOCAL} done",
        f"action 2/2 {LOCAL} started",
        f"action 2/2 {LOCAL} done",
        "run completed",
    ]
    assert stage.notes == []


def test_what_waits_on_the_world_is_noted_before_it_begins() -> None:
    stage = FakeStage()
    [record] = lived(claimed(), plan(HOOK), stage)
    assert said(*stage.notes) == ["run started", f"action 1/1 {HOOK} started"]
    assert said(record) == [f"action 1/1 {HOOK} done", "run completed"]


def test_later_actions_see_what_was_stored_of_earlier_ones() -> None:
    stage = FakeStage()
    lived(claimed(), plan(LOCAL, LOCAL), stage, [Verdict(Standing.WRITTEN, {"event_id": "e9"})])
    assert stage.scopes[1]["actions"] == {"1": {"output": {"event_id": "e9"}}}
    assert stage.scopes[1]["run"] == {"id": "r1", "attempt": 1}


def test_a_record_names_the_events_that_the_run_itself_emitted() -> None:
    run = claimed(done(1, LOCAL, event_id="e7"))
    records = lived(
        run, plan(LOCAL, LOCAL, LOCAL), FakeStage(), [Verdict(Standing.WRITTEN, {"event_id": "e8"})]
    )
    assert [record.own_events for record in records] == [{"e7"}, {"e7", "e8"}]


def test_a_run_resumes_after_its_last_checkpoint() -> None:
    stage = FakeStage()
    records = lived(claimed(done(1), done(2, n=2)), plan(HOOK, HOOK, HOOK), stage)
    assert stage.performed == [3]
    assert records[-1].outcome == Succeeded(None, {"actions": {"1": {}, "2": {"n": 2}, "3": {"n": 3}}})


def test_a_run_of_which_everything_is_done_only_ends() -> None:
    stage = FakeStage()
    [record] = lived(claimed(done(1)), plan(HOOK), stage)
    assert (record.done, record.outcome) == (None, Succeeded(None, {"actions": {"1": {}}}))
    assert said(record) == ["run started", "run completed"]
    assert stage.performed == []


def test_conditions_that_fail_skip_the_run_and_say_why() -> None:
    conditions = {"all": [{"field": "total", "op": "gt", "value": 100}]}
    stage = FakeStage()
    [record] = lived(claimed(told=event(total=50)), plan(HOOK, conditions=conditions), stage)
    assert record.outcome == Succeeded(SkipReason.CONDITIONS, {})
    assert said(record) == ["run started", "run skipped: conditions"]
    assert record.logs[-1].data is not None
    [leaf] = record.logs[-1].data["failed"]
    assert (leaf["field"], leaf["op"], leaf["wanted"], leaf["found"]) == ("total", "gt", 100, 50)
    assert stage.performed == []


def test_conditions_are_not_asked_again_once_an_action_is_done() -> None:
    conditions = {"all": [{"field": "total", "op": "gt", "value": 100}]}
    run = claimed(done(1), told=event(total=50))
    assert lived(run, plan(HOOK, HOOK, conditions=conditions), FakeStage())[-1].outcome is not None


def test_a_guard_ends_the_run_in_one_record() -> None:
    stage = FakeStage()
    [record] = lived(claimed(depth=9), plan(HOOK), stage)
    assert (record.outcome, stage.performed) == (Succeeded(SkipReason.DEPTH_LIMIT, {}), [])


@pytest.mark.parametrize(
    ("found", "keys", "kind", "line"),
    [
        (FATAL, {}, Failed, ["run failed"]),
        (AGAIN, {}, Retried, ["run retries"]),
        (AGAIN, {"failures": 8, "retry_count": 8}, DeadLettered, []),
    ],
)
def test_an_action_that_fails_ends_the_attempt(
    found: Classification, keys: dict[str, int], kind: type, line: list[str]
) -> None:
    stage = FakeStage({1: found})
    [record] = lived(claimed(**keys), plan(HOOK, HOOK), stage)
    assert isinstance(record.outcome, kind)
    assert (record.done, record.failed_type, stage.performed) == (None, HOOK, [1])
    assert said(record) == ["own line", f"action 1/2 {HOOK} failed", *line]


def test_failures_are_counted_for_the_action_that_failed_before_and_anew_for_the_next() -> None:
    planned = plan(HOOK, HOOK, HOOK)
    [_, later] = lived(claimed(done(1), failures=8), planned, FakeStage({3: AGAIN}))
    [same] = lived(claimed(done(1), failures=8), planned, FakeStage({2: AGAIN}))
    assert isinstance(later.outcome, Retried)
    assert later.outcome.failures == 1
    assert isinstance(same.outcome, DeadLettered)


@pytest.mark.parametrize("standing", [Standing.FENCED, Standing.ENDED])
def test_a_run_that_is_not_ours_any_more_or_has_ended_does_nothing_more(standing: Standing) -> None:
    stage = FakeStage()
    records = lived(claimed(), plan(HOOK, HOOK), stage, [Verdict(standing)])
    assert (len(records), stage.performed) == (1, [1])


def test_a_person_stops_a_run_between_two_actions() -> None:
    stage = FakeStage()
    records = lived(claimed(), plan(HOOK, HOOK), stage, [Verdict(Standing.WRITTEN, {}, "CANCELLED")])
    assert stage.performed == [1]
    outcome = records[-1].outcome
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "CANCELLED"


def test_a_process_that_ends_hands_back_between_two_actions() -> None:
    stage = FakeStage(ending=True)
    records = lived(claimed(), plan(HOOK, HOOK), stage)
    assert (stage.performed, records[-1].outcome) == ([1], HandedBack(NOW))


@pytest.mark.parametrize(
    ("error", "kind"),
    [(FatalError("REFERENCE_GONE", "gone"), Failed), (RetryableError("BUSY", "later"), Retried)],
)
def test_a_change_that_is_refused_gives_the_record_of_a_failed_action(error: Any, kind: type) -> None:
    [record] = lived(claimed(), plan(LOCAL), FakeStage())
    assert record.refused is not None
    instead = record.refused(error)
    assert isinstance(instead.outcome, kind)
    assert (instead.done, instead.failed_type) == (None, LOCAL)
    assert said(instead)[:3] == [
        "run started",
        f"action 1/1 {LOCAL} started",
        f"action 1/1 {LOCAL} failed",
    ]
    assert f"action 1/1 {LOCAL} done" not in said(instead)


def test_a_run_that_has_waited_is_asked_about_instead_of_its_event() -> None:
    stage = FakeStage()
    run = claimed(source=RunSource.DELAYED)
    assert (
        said(*lived(run, plan(LOCAL, conditions={"field": "never", "op": "eq", "value": 1}), stage))[-1]
        == "run completed"
    )
    assert (stage.asked, stage.performed) == (["r1"], [1])


def test_a_run_that_stands_down_ends_with_the_reason_and_does_nothing() -> None:
    why: dict[str, Any] = {"failed": []}
    stage = FakeStage(stopped=Stopped(Succeeded(SkipReason.EPISODE_MOVED, {}), why))
    (record,) = lived(claimed(source=RunSource.DELAYED), plan(LOCAL), stage)
    assert record.outcome == Succeeded(SkipReason.EPISODE_MOVED, {})
    assert (record.logs[-1].message, record.logs[-1].data) == ("run skipped: episode_moved", why)
    assert stage.performed == []


def test_nobody_is_asked_about_a_run_that_has_acted() -> None:
    stage = FakeStage(stopped=Stopped(Succeeded(SkipReason.EPISODE_MOVED, {})))
    lived(claimed(done(1), source=RunSource.DELAYED), plan(HOOK, LOCAL), stage)
    assert (stage.asked, stage.performed) == ([], [2])


def test_nobody_is_asked_about_a_run_that_a_guard_has_stopped() -> None:
    stage = FakeStage()
    lived(claimed(source=RunSource.DELAYED, stop_reason="CANCELLED"), plan(LOCAL), stage)
    assert stage.asked == []
