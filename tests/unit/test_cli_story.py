"""The demo's verdicts, and the events that it publishes."""

from collections.abc import Iterator
from datetime import UTC, datetime

import orjson
import pytest

from knockon.demo_story import EXPECTED, is_over, judge
from knockon.event_lines import read_event
from knockon.examples import AUTOMATIONS, EVENTS
from shared.db.inbox import InboxItem
from shared.db.reads import RunSummary
from shared.errors import BadEvent
from shared.ids import new_id
from shared.model.automation import load_yaml
from shared.model.moves import RunStatus
from shared.model.runs import RunSource

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def run(key: str, status: RunStatus, skip_reason: str | None, retries: int) -> RunSummary:
    run_id = new_id()
    return RunSummary(
        id=run_id,
        workspace_id="w1",
        automation_id="a",
        automation_key=key,
        automation_name=key.title(),
        automation_deleted_at=None,
        trigger_type="EVENT",
        source=RunSource.EVENT,
        status=status,
        skip_reason=skip_reason,
        error=None,
        retry_count=retries,
        depth=0,
        root_run_id=run_id,
        entry_id=None,
        stop_reason=None,
        created_at=NOW,
        started_at=NOW,
        ended_at=NOW,
        next_attempt_at=None,
    )


def as_expected() -> Iterator[RunSummary]:
    for ending, number in EXPECTED.items():
        for _ in range(number):
            yield run(*ending)


def notices(runs: list[RunSummary]) -> list[InboxItem]:
    (dead,) = [each for each in runs if each.status is RunStatus.DEAD_LETTER]
    title = f'Automation "{dead.automation_name}" dead-lettered'
    return [InboxItem(new_id(), "a@h.test", title, "", "automation_run", dead.id, NOW, None)]


def test_the_story_holds_when_everything_ended_as_it_must() -> None:
    runs = list(as_expected())
    assert is_over(runs)
    assert all(verdict.holds for verdict in judge(runs, notices(runs)))


def test_a_missing_notice_is_noticed() -> None:
    broken = [verdict.claim for verdict in judge(list(as_expected()), []) if not verdict.holds]
    assert broken == ["the owner was told of the dead letter"]


def test_one_run_too_many_or_too_few_is_noticed() -> None:
    runs = list(as_expected())
    more = [*runs, run("ping", RunStatus.SUCCEEDED, None, 0)]
    assert [verdict.holds for verdict in judge(more, notices(runs))].count(False) == 2
    fewer = [each for each in runs if each.automation_key != "confirm-order"]
    assert not is_over(fewer)
    assert [verdict.holds for verdict in judge(fewer, notices(runs))].count(False) == 2


def test_the_examples_are_valid() -> None:
    keys = {definition.key for definition in load_yaml(AUTOMATIONS.read_text())}
    assert keys == {key for key, *_ in EXPECTED}
    for line in EVENTS.read_text().splitlines():
        read_event(orjson.loads(line), "w1")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"type": "Order"}, "type"),
        ({}, "type"),
        ({"type": 5}, "type"),
        ({"type": "order.placed", "payload": []}, "payload"),
        ({"type": "order.placed", "occurredAt": "yesterday"}, "occurredAt"),
        ({"type": "order.placed", "surplus": 1}, "surplus"),
        ({"type": "order.placed", "workspaceId": ""}, "workspaceId"),
        ({"type": "message.created", "payload": {}}, "payload"),
    ],
)
def test_a_bad_event_is_refused_with_its_field(fields: dict[str, object], field: str) -> None:
    with pytest.raises(BadEvent) as refused:
        read_event(fields, "w1")
    assert refused.value.field == field


def test_an_event_of_a_line_keeps_what_is_given() -> None:
    given = {"type": "order.placed", "id": "o1", "occurredAt": "2026-03-01T00:00:00Z", "source": "shop"}
    draft = read_event(given, "w1")
    assert (draft.id, draft.occurred_at, draft.source, draft.workspace_id) == ("o1", NOW, "shop", "w1")
    assert read_event({"type": "order.placed", "workspaceId": "w2"}, "w1").workspace_id == "w2"
