"""What is only ever added: checkpoints and attempts once, log lines and audit in order."""

from datetime import UTC, datetime, timedelta

from shared.db.claims import finished_actions
from shared.db.history import (
    Attempt,
    AuditEntry,
    RunLog,
    insert_actions,
    insert_attempts,
    insert_audit,
    insert_logs,
    recorded,
)
from shared.db.types import read_instant
from shared.model.runs import ActionDone, Claim, FinishedAction, LogLine, RunError
from tests.rooms import Room, tree

NOW = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)
MINE, OTHER = Claim("r1", 1), Claim("r1", 2)


def done(position: int, **output: object) -> ActionDone:
    return ActionDone(position, "SEND_WEBHOOK", output, (), NOW, NOW)


def log_line(message: str, at: datetime = NOW) -> RunLog:
    return RunLog("w1", "a1", "r1", LogLine("info", message, at, {"ü": [1, None]}))


def test_a_checkpoint_is_written_once_and_stays_as_it_is(room: Room) -> None:
    with room.database.begin() as conn:
        insert_actions(conn, [(MINE, done(2, n=2)), (MINE, done(1, n=1))])
        insert_actions(conn, [(OTHER, done(2, n=9)), (OTHER, done(3, n=3))])
        insert_actions(conn, [])
        found = finished_actions(conn, ["r1", "r2"])
    assert found == {"r1": tuple(FinishedAction(n, "SEND_WEBHOOK", {"n": n}) for n in (1, 2, 3))}


def test_an_attempt_is_written_once_a_claim(room: Room) -> None:
    error = RunError("CODE", "text", 2)
    with room.database.begin() as conn:
        insert_attempts(conn, [Attempt(MINE, "failed", error, "w", NOW, NOW)])
        insert_attempts(
            conn,
            [
                Attempt(MINE, "succeeded", None, "x", NOW, NOW),
                Attempt(OTHER, "crashed", None, "x", None, NOW),
            ],
        )
    first, second = room.all("SELECT * FROM run_attempts ORDER BY lease")
    assert (first.outcome, first.code, first.message, first.position, first.owner) == (
        "failed",
        "CODE",
        "text",
        2,
        "w",
    )
    assert (second.outcome, second.code, second.started_at) == ("crashed", None, None)


def test_what_is_on_record_for_a_claim_is_told_and_nothing_else(room: Room) -> None:
    with room.database.begin() as conn:
        insert_actions(conn, [(MINE, done(1, n=1)), (OTHER, done(2, n=2))])
        insert_attempts(conn, [Attempt(OTHER, "failed", None, "w", NOW, NOW)])
        insert_logs(conn, [log_line("one")])
        lines = [("r1", "one", NOW), ("r1", "two", NOW), ("r1", "one", NOW + timedelta(microseconds=1))]
        mine, other = recorded(conn, {MINE}, lines), recorded(conn, {OTHER}, [])
    assert (mine.attempts, mine.actions) == (frozenset(), {("r1", 1): {"n": 1}})
    assert mine.lines == {("r1", "one", NOW)}
    assert (other.attempts, other.actions) == (frozenset({OTHER}), {("r1", 2): {"n": 2}})
    assert not other.lines


def test_log_lines_keep_their_order_and_their_data(room: Room) -> None:
    messages = [f"line {n}" for n in range(50)]
    with room.database.begin() as conn:
        insert_logs(conn, map(log_line, messages))
        insert_logs(conn, [])
    assert room.messages("r1") == messages
    row = room.all("SELECT * FROM automation_logs ORDER BY id")[0]
    assert (row.workspace_id, row.automation_id, row.level) == ("w1", "a1", "info")
    assert (tree(row.data), read_instant(row.at)) == ({"ü": [1, None]}, NOW)


def test_audit_tells_who_did_what(room: Room) -> None:
    entry = AuditEntry("w1", "USER anna", "automation.paused", "automation", "a1", {"from": "ACTIVE"})
    with room.database.begin() as conn:
        insert_audit(conn, [entry, entry], now=NOW)
    first, second = room.all("SELECT * FROM audit ORDER BY id")
    assert first.id < second.id
    assert (first.actor, first.action, first.resource_id) == ("USER anna", "automation.paused", "a1")
    assert (tree(first.detail), read_instant(first.at)) == ({"from": "ACTIVE"}, NOW)
