"""What a dead letter leaves behind, and how a lease is compared before its run is taken away."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from shared.db.claims import renew_leases
from shared.db.dead_letters import DeadLetter, DeadLetterKind, automation_names, record_dead_letters
from shared.db.rescue import expired_leases, lock_expired
from shared.model.executed import EndedRun
from shared.model.moves import RunStatus
from shared.model.runs import RunError
from tests.watchdog_stage import WORKSPACE, Stage, add_members, close_stage, open_stage

ERROR = RunError("WEBHOOK_HTTP_RETRIABLE", "503", 2)
LETTER = DeadLetter(
    run=EndedRun("r1", WORKSPACE, "a1", "r1", "RECORD_CREATED", 0, RunStatus.DEAD_LETTER, 1000, ERROR),
    automation_name='Say "hi"',
    error=ERROR,
    attempts=9,
    kind=DeadLetterKind.EXHAUSTED,
)


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    opened = open_stage(database_url, redis_url)
    yield opened
    close_stage(opened)


def test_used_up_retries_are_told_in_the_words_of_the_engine_document(stage: Stage) -> None:
    add_members(stage, ("owner", "operator"))
    with stage.database.begin() as conn:
        events = record_dead_letters(conn, [LETTER], now=stage.clock.now())
    (notice,) = stage.rows("SELECT * FROM notifications")
    assert notice.title == 'Automation "Say "hi"" dead-lettered'
    assert notice.body == "Failed after 9 attempts: WEBHOOK_HTTP_RETRIABLE — 503"
    (audit,) = stage.rows("SELECT * FROM audit")
    assert (audit.action, audit.actor) == ("automation.dead_lettered", "SYSTEM automation:a1")
    assert stage.logs("r1") == ["run dead-lettered"]
    assert [row.id for row in stage.rows("SELECT id FROM outbox")] == [event.id for event in events]


def test_no_dead_letter_leaves_nothing(stage: Stage) -> None:
    with stage.database.begin() as conn:
        assert record_dead_letters(conn, [], now=stage.clock.now()) == ()
    assert stage.rows("SELECT id FROM outbox") == []


def test_names_are_found_for_those_that_exist(stage: Stage) -> None:
    known = stage.automation()
    with stage.database.read() as conn:
        assert automation_names(conn, [known, known, "gone"]) == {known: "Tell the shop"}


def test_a_lease_renewed_after_the_look_is_not_taken(stage: Stage) -> None:
    claim = stage.running()
    now = stage.advance(61)
    with stage.database.read() as conn:
        seen = expired_leases(conn, now=now, most=10)
    with stage.database.begin() as conn:
        assert [run.claim for run in lock_expired(conn, seen)] == [claim]
        renew_leases(conn, [claim], now - timedelta(seconds=0.5))
        assert lock_expired(conn, seen) == []
