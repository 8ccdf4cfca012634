"""The journal: what waits is one commit, an outage loses and doubles nothing, one bad record dies alone."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from pipeline.held import HeldRun
from pipeline.verdicts import Record, Standing
from shared.db.automations import AutomationState
from shared.db.types import must_instant
from shared.errors import FatalError
from shared.model.effects import CreateSubject, Emit, Notify, UpdateSubject
from shared.model.runs import ClaimedRun, Failed, HandedBack, Retried, RunError, Succeeded
from shared.model.statuses import AutomationStatus
from tests.journals import DONE, Desk, Line, acted, disturbed, ended, note, running_journal
from tests.rooms import OpenRoom, Room, claim, tree
from tests.runs import plan
from tests.waiting import poll

TELL = Notify("title", "body", ("owner",))
EMIT = Emit("order.seen", {})
CREATE = CreateSubject("record", "r1", {"a": 1}, "d1", "record.created")
CHANGE_GONE = UpdateSubject("record", "none", {"a": 1}, force=False, event_type="record.updated")
TABLES = ("automation_logs", "run_actions", "run_attempts", "notifications", "outbox", "subjects")


@pytest.fixture
def desk(room: Room) -> Iterator[Desk]:
    room.owner()
    with running_journal(room) as opened:
        yield opened


@pytest.fixture
def line(room: Room) -> Iterator[Line]:
    with disturbed(room) as opened:
        yield opened


def claimed(room: Room, count: int, lease_s: float = 60) -> list[ClaimedRun]:
    return claim(room, *room.runs(room.automation(), [{}] * count), lease_s=lease_s)


def sizes(room: Room) -> dict[str, int]:
    return {table: room.one(f"SELECT count(*) AS n FROM {table}").n for table in TABLES}


def statuses(room: Room, runs: list[ClaimedRun]) -> list[str]:
    return [room.status(run.claim.run_id) for run in runs]


def written(desk: Desk, *records: Record) -> list[Standing]:
    tickets = [desk.journal.hand_over(record) for record in records]
    return [ticket.wait().standing for ticket in tickets]


def test_a_lone_record_is_written_before_its_ticket_answers(room: Room, desk: Desk) -> None:
    [run] = claimed(room, 1)
    assert written(desk, ended(run)) == [Standing.WRITTEN]
    assert statuses(room, [run]) == ["SUCCEEDED"]


def test_what_gathers_during_a_commit_is_the_next_commit(room: Room, desk: Desk, line: Line) -> None:
    runs = claimed(room, 31)
    line.waiting.clear()
    line.gate.clear()
    first = desk.journal.hand_over(ended(runs[0]))
    assert line.waiting.wait(5)
    begun = line.begun
    tickets = [desk.journal.hand_over(ended(run)) for run in runs[1:]]
    line.gate.set()
    assert {ticket.wait().standing for ticket in (first, *tickets)} == {Standing.WRITTEN}
    assert line.begun - begun <= 3  # the batch, and the marks on what was sent
    assert set(statuses(room, runs)) == {"SUCCEEDED"}


def test_what_happens_while_sql_is_away_is_written_when_it_returns(
    room: Room, desk: Desk, line: Line
) -> None:
    runs = claimed(room, 5)
    line.away = 3
    assert written(desk, *(acted(run, TELL, outcome=DONE) for run in runs)) == [Standing.WRITTEN] * 5
    assert statuses(room, runs) == ["SUCCEEDED"] * 5
    assert sizes(room) == {
        "automation_logs": 5,
        "run_actions": 5,
        "run_attempts": 5,
        "notifications": 5,
        "outbox": 5,
        "subjects": 0,
    }


def test_a_server_that_cuts_every_connection_costs_nothing(room: Room, desk: Desk) -> None:
    if room.database.dialect == "sqlite":
        room.database.dispose()
    else:
        url = str(room.parts.settings.database_url)
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
    runs = poll(lambda: claimed_again(room))
    assert written(desk, *map(ended, runs)) == [Standing.WRITTEN] * 3
    assert statuses(room, runs) == ["SUCCEEDED"] * 3


def claimed_again(room: Room) -> list[ClaimedRun]:
    """Claim three runs of a server that has just cut its connections."""
    try:
        return claimed(room, 3)
    except DBAPIError:
        return []


def test_a_commit_whose_answer_was_lost_is_not_written_a_second_time(
    room: Room, desk: Desk, line: Line
) -> None:
    noted, going, last, retried, stale = claimed(room, 5)
    room.set(stale.claim.run_id, lease=9)
    wait = Retried(RunError("X", "", 1), datetime.now(UTC) + timedelta(hours=1), 1)
    records = [
        note(noted),
        acted(going, CREATE),
        acted(last, TELL, EMIT, outcome=DONE),
        ended(retried, wait),
        acted(stale, TELL),
    ]
    line.waiting.clear()
    line.gate.clear()
    desk.journal.hand_over(note(noted, "opens the gate"))
    assert line.waiting.wait(5)
    tickets = [desk.journal.hand_over(record) for record in records]
    line.lost = 2
    line.gate.set()
    verdicts = [ticket.wait() for ticket in tickets]
    assert [verdict.standing for verdict in verdicts] == [Standing.WRITTEN] * 4 + [Standing.FENCED]
    assert verdicts[1].output == tree(
        room.one(
            "SELECT output FROM run_actions WHERE position = 1 AND run_id = :id", id=going.claim.run_id
        ).output
    )
    assert "event_id" in verdicts[1].output
    assert sizes(room) == {
        "automation_logs": 5,
        "run_actions": 2,
        "run_attempts": 2,
        "notifications": 1,
        "outbox": 3,
        "subjects": 1,
    }
    assert (room.row(retried.claim.run_id).retry_count, line.lost) == (1, 0)


def test_a_refusal_whose_commit_was_not_answered_still_ends_the_run(
    room: Room, desk: Desk, line: Line
) -> None:
    [run] = claimed(room, 1)
    line.lost = 1
    assert written(desk, acted(run, CHANGE_GONE)) == [Standing.ENDED]
    assert statuses(room, [run]) == ["FAILED"]
    assert sizes(room)["run_attempts"] == 1


def test_the_record_that_sql_cannot_hold_ends_its_run_and_no_other(
    room: Room, desk: Desk, line: Line
) -> None:
    runs = claimed(room, 9)
    bad = Notify("\ud800", "", ("owner",))
    line.waiting.clear()
    line.gate.clear()
    desk.journal.hand_over(note(runs[0]))
    assert line.waiting.wait(5)
    records = [acted(run, bad if at == 4 else TELL, outcome=DONE) for at, run in enumerate(runs)]
    tickets = [desk.journal.hand_over(record) for record in records]
    line.gate.set()
    standings = [ticket.wait().standing for ticket in tickets]
    assert standings == [Standing.ENDED if at == 4 else Standing.WRITTEN for at in range(9)]
    assert statuses(room, runs) == ["FAILED" if at == 4 else "SUCCEEDED" for at in range(9)]
    assert tree(room.row(runs[4].claim.run_id).error)["code"] == "UNRECORDABLE"
    assert sizes(room)["notifications"] == 8


@pytest.mark.parametrize("how", ["lease", "status"])
def test_a_fenced_record_leaves_no_trace(room: Room, desk: Desk, how: str) -> None:
    [run] = claimed(room, 1)
    if how == "lease":
        room.set(run.claim.run_id, lease=2)
    else:
        room.set(run.claim.run_id, status="PENDING")
    before = room.row(run.claim.run_id)
    records = (note(run), acted(run, TELL, EMIT, CREATE), acted(run, CHANGE_GONE), ended(run))
    assert written(desk, *records) == [Standing.FENCED] * 4
    assert room.row(run.claim.run_id) == before
    assert sizes(room) == dict.fromkeys(TABLES, 0)


def test_the_verdict_tells_that_a_person_wants_the_run_to_end(room: Room, desk: Desk) -> None:
    [run] = claimed(room, 1)
    room.set(run.claim.run_id, stop_reason="CANCELLED")
    assert desk.journal.hand_over(acted(run)).wait().stop_reason == "CANCELLED"


@pytest.mark.parametrize(
    ("outcome", "written_as"),
    [
        (DONE, "succeeded"),
        (Failed(RunError("X", "", 1)), "failed"),
        (HandedBack(datetime(2026, 3, 1, tzinfo=UTC)), "handed_back"),
        (Retried(RunError("X", "", 1), datetime(2026, 3, 1, tzinfo=UTC), 1), "failed"),
    ],
)
def test_every_end_of_an_attempt_is_on_record(
    room: Room, desk: Desk, outcome: Succeeded | Failed, written_as: str
) -> None:
    [run] = claimed(room, 1)
    written(desk, ended(run, outcome))
    attempt = room.one("SELECT * FROM run_attempts")
    assert (attempt.run_id, attempt.lease, attempt.outcome) == (run.claim.run_id, 1, written_as)


def test_leases_of_held_runs_are_renewed_and_a_lost_one_is_not(open_here: OpenRoom) -> None:
    room = open_here(run_lease_s=0.4, lease_renew_s=0.1)
    kept, lost = claimed(room, 2, lease_s=0.4)
    room.set(lost.claim.run_id, lease=2)
    before = {run.claim.run_id: room.row(run.claim.run_id).lease_until for run in (kept, lost)}
    state = AutomationState(1, AutomationStatus.ACTIVE, is_deleted=False)
    with running_journal(room) as desk:
        desk.held.add([HeldRun(run, plan(state=state)) for run in (kept, lost)])
        first = must_instant(before[kept.claim.run_id])
        poll(lambda: must_instant(room.row(kept.claim.run_id).lease_until) > first + timedelta(seconds=0.3))
    assert room.row(lost.claim.run_id).lease_until == before[lost.claim.run_id]


def test_closing_writes_what_waits(room: Room) -> None:
    runs = claimed(room, 20)
    with running_journal(room) as desk:
        for run in runs:
            desk.journal.hand_over(ended(run))
    assert set(statuses(room, runs)) == {"SUCCEEDED"}
    assert not desk.journal.is_alive()


def test_closing_does_not_wait_for_a_server_that_stays_away(room: Room, line: Line) -> None:
    [run] = claimed(room, 1)
    with running_journal(room) as desk:
        line.away = 1_000
        ticket = desk.journal.hand_over(ended(run))
        desk.journal.close(0.1)
        assert desk.journal.is_alive()
        line.away = 0
        assert ticket.wait().standing is Standing.WRITTEN


def test_an_error_that_is_ours_ends_the_run_that_it_concerns(room: Room, desk: Desk) -> None:
    good, bad = claimed(room, 2)

    def refused(_: object) -> Record:
        raise FatalError("NEVER", "the record of the refusal cannot be made")

    record = acted(bad, CHANGE_GONE)
    broken = Record(bad, "n", record.at, done=record.done, refused=refused)
    assert written(desk, ended(good), broken) == [Standing.WRITTEN, Standing.ENDED]
    assert statuses(room, [good, bad]) == ["SUCCEEDED", "FAILED"]
