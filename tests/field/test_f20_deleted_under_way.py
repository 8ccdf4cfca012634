"""An automation, or the record of a run, is deleted while runs of it are under way.

Elsewhere what was to go on found nothing any more, and so did the handler of that error, over and over. Here
the delete itself ends what waits; what is under way finishes the action that it is in and starts no other. A
record that is gone ends its run for good, at the action that needs it.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from executors.contract import ActionResult, RunContext
from executors.send_webhook import send_webhook
from knockon.cli.app import make_app
from shared.model.actions import ActionConfig, SendWebhook
from shared.services.automations import delete
from tests.field.conftest import Open
from tests.field.road import W1, Road
from tests.listening import capture_logs
from tests.rooms import tree
from tests.waiting import poll
from watchdog.service import Watchdog

KEY = "greet"
PATHS = ("/one", "/two", "/three", "/four", "/five")
SLOW = "/two"
DUE_IN_S = 8
# One run passes, the next one fails four times, the rest would pass.
SCRIPT = {"/one": [200, 503, 503, 503, 503, 200]}
TOUCH = {"type": "UPDATE_RECORD", "config": {"properties": {"greeted": True}}}


@dataclass(frozen=True)
class Gate:
    """Keeps the posts to the slow path from ending, once it is closed; what was posted has arrived."""

    opened: threading.Event = field(default_factory=threading.Event)

    def send(self, config: ActionConfig, run: RunContext) -> ActionResult:
        """Post as the product does."""
        assert isinstance(config, SendWebhook)
        result = send_webhook(config, run)
        if config.url.endswith(SLOW):
            assert self.opened.wait(30)
        return result


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def road(open_here: Open, gate: Gate) -> Road:
    return open_here(script=SCRIPT, executors={"SEND_WEBHOOK": gate.send})


def publish_held(road: Road, gate: Gate, type_: str, **payload: str) -> None:
    """Publish what starts a run, and have that run stay in its slow action."""
    gate.opened.clear()
    before = len(road.receiver.deliveries(SLOW))
    road.publish(type_, payload)
    road.go()
    poll(lambda: len(road.receiver.deliveries(SLOW)) > before)


def under_way(road: Road, gate: Gate) -> Sequence[str]:
    """Give four runs: finished, to be retried in 8 s, RUNNING in action 2 of 5, and waiting."""
    road.automation(*map(road.hook, PATHS), on="mail.due", key=KEY)
    gate.opened.set()
    road.publish("mail.due")
    road.rest()
    road.publish("mail.due")
    road.rest()
    for wait_s in (1, 2, 4):
        road.wait(wait_s)
    publish_held(road, gate, "mail.due")
    road.publish("mail.due")
    road.post.step()
    assert road.ends() == ["SUCCEEDED", "PENDING", "RUNNING", "PENDING"]
    due = [(run.retry_count, run.next_attempt_at is not None) for run in road.runs()]
    assert due == [(0, False), (4, True), (0, False), (0, False)]
    return [run.id for run in road.runs()]


def go_on(road: Road, gate: Gate) -> None:
    """Let the slow action end, and pass the time at which the retry was due."""
    gate.opened.set()
    road.rest()
    road.wait(DUE_IN_S)
    Watchdog(road.watchdog()).tick()
    road.wait(600)


def faults(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Give the lines of a process's log that ask for a person."""
    return [line for line in lines if line["log_level"] in ("error", "critical") or "exc_info" in line]


def shown(road: Road, *arguments: str) -> Any:
    """Ask the command."""
    servers = {"DATABASE_URL": road.room.parts.settings.database_url, "KNOCKON_WORKSPACE": "w1"}
    result = CliRunner().invoke(make_app(), [*arguments, "-o", "json"], env=servers)
    assert result.exit_code == 0, result.output
    return orjson.loads(result.stdout)


def test_what_waits_is_cancelled_and_what_runs_stops_before_its_next_action(road: Road, gate: Gate) -> None:
    _, retried, running, waiting = under_way(road, gate)
    before = [post.path for post in road.receiver.deliveries()]
    with capture_logs() as lines:
        delete(road.post.backends, W1, KEY)
        assert road.ends() == ["SUCCEEDED", "CANCELLED", "RUNNING", "CANCELLED"]
        go_on(road, gate)
    assert road.ends() == ["SUCCEEDED", "CANCELLED", "FAILED", "CANCELLED"]
    assert [post.path for post in road.receiver.deliveries()] == before
    assert faults(lines) == []
    assert [(line["run_id"], line["to"]) for line in lines if "run_id" in line] == [(running, "failed")]
    stopped = road.room.row(running)
    assert road.code(stopped) == "AUTOMATION_DELETED"
    assert (stopped.retry_count, stopped.next_attempt_at) == (0, None)
    done = road.room.all("SELECT position FROM run_actions WHERE run_id = :id ORDER BY position", id=running)
    assert [action.position for action in done] == [1, 2]
    for run_id in (retried, waiting):
        run = road.room.row(run_id)
        assert (run.stop_reason, run.next_attempt_at) == ("AUTOMATION_DELETED", None)
        assert road.room.messages(run_id)[-1] == "run cancelled"
        assert road.room.messages(run_id).count("run cancelled") == 1
    assert road.notices() == []


def test_each_end_is_told_once_and_nothing_starts_afterwards(road: Road, gate: Gate) -> None:
    ids = under_way(road, gate)
    delete(road.post.backends, W1, KEY)
    go_on(road, gate)
    ends = [(event.payload["runId"], event.payload["status"]) for event in road.told("automation.executed")]
    assert sorted(ends) == sorted(zip(ids, road.ends(), strict=True))
    road.publish("mail.due")
    road.rest()
    assert [run.id for run in road.runs()] == ids


def test_the_history_stays_readable(road: Road, gate: Gate) -> None:
    finished, *others = under_way(road, gate)
    delete(road.post.backends, W1, KEY)
    go_on(road, gate)
    listed = shown(road, "runs", "list", "--automation", KEY)
    assert [run["id"] for run in listed] == [*reversed(others), finished]
    told = shown(road, "runs", "show", finished)
    assert [action["position"] for action in told["actions"]] == [1, 2, 3, 4, 5]
    assert told["logs"][-1]["message"] == "run completed"
    assert all(shown(road, "runs", "show", run_id)["run"]["automation_key"] == KEY for run_id in others)


def test_a_record_that_is_gone_ends_the_run_at_the_action_that_needs_it(road: Road, gate: Gate) -> None:
    road.automation(road.hook(SLOW), TOUCH, road.hook("/three"), on="mail.due")
    gate.opened.set()
    road.update({"name": "Ada"}, "name")
    road.rest()
    publish_held(road, gate, "mail.due", recordId="r1")
    with capture_logs() as lines:
        road.publish("record.deleted", {"recordId": "r1", "databaseId": "d1"})
        road.post.step()
        go_on(road, gate)
    run = road.run()
    assert (run.status, run.retry_count, run.next_attempt_at) == ("FAILED", 0, None)
    assert (road.code(run), tree(run.error)["position"]) == ("REFERENCE_GONE", 2)
    assert [line["run_id"] for line in lines if line["event"] == "outcome_refused"] == [run.id]
    assert faults(lines) == []
    assert [post.path for post in road.receiver.deliveries()] == [SLOW]
    assert road.data("r1") == {"name": "Ada"}
    assert road.room.one("SELECT deleted_at FROM subjects WHERE id = 'r1'").deleted_at is not None
    assert len(road.told("record.updated")) == 1
