"""A delayed run leaves alone what was changed after it fired, and nothing else (docs/delayed.md)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from shared.db.claims import Lessee, claim_runs, find_claimed
from shared.db.types import read_json
from shared.model.runs import Look
from shared.model.subjects import data
from shared.services.runs import ReplayFrom, replay
from tests.delayed_stage import HOUR, MINUTE, Stage, drive, engine_of, open_stage, run_of, wait
from tests.people import CALLER

MOMENT = timedelta(milliseconds=1)


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    with open_stage(database_url, redis_url) as opened:
        yield opened


@dataclass(frozen=True)
class Kind:
    """An action on a subject: the field that it sets to `new`."""

    type_: str
    field: str
    trigger: str
    conditions: dict[str, Any]
    action: dict[str, Any]


KINDS = {
    "ASSIGN": Kind(
        "conversation",
        "assigneeId",
        "CONVERSATION_UPDATED",
        {"field": "conversation.status", "op": "eq", "value": "pending"},
        {"type": "ASSIGN", "config": {"assignee_id": "new"}},
    ),
    "UPDATE_RECORD": Kind(
        "record",
        "owner",
        "RECORD_UPDATED",
        {"field": "properties.status", "op": "eq", "value": "pending"},
        {"type": "UPDATE_RECORD", "config": {"properties": {"owner": "new"}}},
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def waiting(stage: Stage, kind: Kind, *actions: dict[str, Any]) -> str:
    """Let the subject s1 wait for four hours; give the row's id."""
    stage.put("s1", kind.type_, status="pending", **{kind.field: "first"})
    rule = stage.rule(
        trigger={"type": kind.trigger, "config": {}},
        conditions=kind.conditions,
        actions=[*actions, kind.action],
    )
    return wait(stage, rule, "s1", type_=kind.type_)


def written(stage: Stage, kind: Kind) -> object:
    return data(stage.subject("s1", kind.type_))[kind.field]


def stale(stage: Stage, pending_id: str, at: int = 1) -> object:
    run = run_of(stage, pending_id)
    assert run.status == "SUCCEEDED"
    return read_json(run.output)["actions"][str(at)]["stale"]


def test_what_was_changed_while_it_waited_does_not_hinder(stage: Stage, kind: Kind) -> None:
    found = waiting(stage, kind)
    stage.after(HOUR).put("s1", kind.type_, **{kind.field: "somebody's"})
    stage.after(3 * HOUR).sweep()
    drive(stage, engine_of(stage))
    assert (stale(stage, found), written(stage, kind)) == ([], "new")


def test_what_somebody_changed_after_it_fired_is_left_alone(stage: Stage, kind: Kind) -> None:
    found = waiting(stage, kind)
    stage.after(4 * HOUR).sweep()
    stage.put("s1", kind.type_, **{kind.field: "somebody's"})
    drive(stage, engine_of(stage))
    assert (stale(stage, found), written(stage, kind)) == ([kind.field], "somebody's")


def test_what_it_wrote_itself_does_not_hinder(stage: Stage, kind: Kind) -> None:
    first = {"ASSIGN": {"assignee_id": "old"}, "UPDATE_RECORD": {"properties": {"owner": "old"}}}
    type_ = kind.action["type"]
    found = waiting(stage, kind, {"type": type_, "config": first[type_]})
    stage.after(4 * HOUR).sweep()
    drive(stage, engine_of(stage))
    assert (stale(stage, found, 2), written(stage, kind)) == ([], "new")


@pytest.mark.parametrize("then", ["somebody's", None])
def test_a_replay_counts_from_when_the_run_was_made(stage: Stage, kind: Kind, then: str | None) -> None:
    found = waiting(stage, kind)
    stage.after(HOUR).put("s1", kind.type_, **{kind.field: "meanwhile"})
    stage.after(3 * HOUR).sweep()
    stage.change("UPDATE automation_runs SET status = 'DEAD_LETTER', ended_at = created_at")
    if then is not None:
        stage.after(HOUR).put("s1", kind.type_, **{kind.field: then})
    replay(stage.backends, CALLER, [run_of(stage, found).id], ReplayFrom.START)
    drive(stage, engine_of(stage))
    expected = ([], "new") if then is None else ([kind.field], then)
    assert (stale(stage, found), written(stage, kind)) == expected


def test_who_claims_the_run_and_who_takes_it_over_know_what_it_was_made_upon(stage: Stage) -> None:
    found = waiting(stage, KINDS["ASSIGN"])
    newest = stage.subject("s1").newest
    stage.after(4 * HOUR).sweep()
    now = stage.clock.now()
    with stage.backends.database.begin() as conn:
        (claimed,) = claim_runs(conn, [run_of(stage, found).id], Lessee("me", now, HOUR))
        taken_over = find_claimed(conn, claimed.claim)
    assert claimed.look == Look(("conversation", "s1"), newest, now)
    assert taken_over == claimed


@pytest.mark.parametrize("later", [timedelta(), MOMENT])
def test_of_another_subject_counts_what_was_written_since_it_fired(stage: Stage, later: timedelta) -> None:
    """What was written at the very moment counts as known."""
    stage.put("r9", "record", owner="first")
    stage.put(status="pending")
    config = {"record_id": "r9", "properties": {"owner": "new"}}
    found = wait(stage, stage.rule(actions=[{"type": "UPDATE_RECORD", "config": config}]))
    stage.after(HOUR).put("r9", "record", owner="meanwhile")
    stage.after(3 * HOUR).sweep()
    stage.after(later).put("r9", "record", owner="somebody's")
    stage.after(MINUTE)
    drive(stage, engine_of(stage))
    owner = data(stage.subject("r9", "record"))["owner"]
    expected = (["owner"], "somebody's") if later else ([], "new")
    assert (stale(stage, found), owner) == expected
