"""The event that tells how a run ended."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from shared.model.events import MAX_ENTRY_BYTES, decode_entry
from shared.model.executed import EndedRun, duration_ms, executed_event
from shared.model.moves import RunStatus
from shared.model.runs import RunError

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ENDED = EndedRun("r1", "w1", "a1", "root", "RECORD_CREATED", 0, RunStatus.SUCCEEDED, 1234, None)


def encode(run: EndedRun) -> dict[str, str]:
    fields = executed_event(run, event_id="e1", now=NOW)
    assert fields is not None
    return fields


def test_it_carries_what_the_engine_document_names() -> None:
    fields = encode(ENDED)
    assert fields["type"] == "automation.executed"
    assert fields["workspaceId"] == "w1"
    assert orjson.loads(fields["payload"]) == {
        "workspaceId": "w1",
        "automationId": "a1",
        "runId": "r1",
        "status": "SUCCEEDED",
        "triggerType": "RECORD_CREATED",
        "durationMs": 1234,
    }
    assert orjson.loads(fields["context"]) == {
        "automationId": "a1",
        "runId": "r1",
        "rootRunId": "root",
        "depth": 1,
    }


def test_a_failure_is_told_with_its_code() -> None:
    fields = encode(replace(ENDED, status=RunStatus.FAILED, error=RunError("BAD", "no such page", 2)))
    assert orjson.loads(fields["payload"])["error"] == {"code": "BAD", "message": "no such page"}


@pytest.mark.parametrize("depth", [1, 4, 5])
def test_deeper_runs_tell_nothing(depth: int) -> None:
    assert executed_event(replace(ENDED, depth=depth), event_id="e1", now=NOW) is None


def test_the_matcher_can_read_it_whatever_the_message() -> None:
    run = replace(ENDED, error=RunError("BAD", "\ud800\0" + "č" * MAX_ENTRY_BYTES, None))
    fields = {name.encode(): value.encode() for name, value in encode(run).items()}
    event = decode_entry("1-1", fields)
    assert (event.id, event.depth, event.occurred_at) == ("e1", 1, NOW)


def test_a_duration_is_never_negative() -> None:
    assert duration_ms(NOW, NOW + timedelta(seconds=1.5)) == 1500
    assert duration_ms(NOW, NOW - timedelta(seconds=1)) == 0
    assert duration_ms(None, NOW) == 0
