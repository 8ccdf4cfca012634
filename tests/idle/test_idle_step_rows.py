"""Idle steps as rows: each change is one that the table of moves has, and walks along an index."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from shared.db.ageing import Ageing, forget
from shared.db.engine import Database, open_database
from shared.db.idle_due import (
    claim_steps,
    due_steps,
    hand_over,
    lock_claimed_steps,
    return_steps,
    stuck_steps,
)
from shared.db.idle_facts import newest_counting, workspaces_with_holders
from shared.db.idle_rows import IDLE_COLUMNS, idle_step_row
from shared.db.idle_steps import (
    Settlement,
    insert_idle,
    lock_idle,
    lock_open_idle,
    revive_idle,
    settle_idle,
    supersede_waiting,
)
from shared.db.pending_due import DueClaim
from shared.db.sheet import Sheet
from shared.db.sql import sql
from shared.ids import new_id
from shared.model.idle_steps import IDLE_MOVES, IdleAnchor, IdleStatus, IdleStepRow, IdleStop
from tests.idle_rows import DUE, add_step, fill_steps, step_id
from tests.statements import explain, statements

COUNT = 20_000
ENDS = [status for status in IdleStatus if status not in (IdleStatus.PENDING, IdleStatus.PROCESSING)]
SECOND = timedelta(seconds=1)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    yield opened
    opened.dispose()


def read(conn: Connection) -> list[IdleStepRow]:
    rows = sql(f"SELECT {IDLE_COLUMNS} FROM idle_steps r ORDER BY r.id").run(conn)
    return [idle_step_row(row) for row in rows]


@pytest.mark.parametrize("to", ENDS)
@pytest.mark.parametrize("origin", IdleStatus)
def test_a_step_goes_where_the_table_of_moves_lets_it(
    database: Database, origin: IdleStatus, to: IdleStatus
) -> None:
    with database.begin() as conn:
        add_step(conn, "s1", status=origin, version=3)
        stop = IdleStop.CANCELLED if to is IdleStatus.STOPPED else None
        moved = settle_idle(conn, [Settlement("s1", None, to, stop)], DUE)
        (row,) = read(conn)
    assert moved == ({"s1"} if to in IDLE_MOVES[origin] else frozenset())
    if moved:
        assert (row.status, row.reason, row.ended_at, row.version) == (to, stop, DUE, 4)
    else:
        assert (row.status, row.version) == (origin, 3)


def test_a_settlement_of_another_version_changes_nothing(database: Database) -> None:
    with database.begin() as conn:
        add_step(conn, "s1", version=3)
        add_step(conn, "s2", version=3)
        asked = [
            Settlement(id_, version, IdleStatus.STOPPED, IdleStop.CANCELLED)
            for id_, version in (("s1", 2), ("s2", 3))
        ]
        assert settle_idle(conn, asked, DUE) == {"s2"}


def test_on_a_sheet_steps_are_settled_superseded_and_inserted_at_once(database: Database) -> None:
    with database.begin() as conn:
        add_step(conn, "s1", status="processing")
        add_step(conn, "s2")
        (first, _) = read(conn)
        sheet = Sheet()
        settle_idle(sheet, [Settlement("s1", None, IdleStatus.FIRED)], DUE)
        supersede_waiting(sheet, [("w1", "s2")], DUE)
        insert_idle(sheet, [replace(first, id="s3", anchor=IdleAnchor("m2", (2, 0)))])
        sheet.write(conn)
        assert [(row.id, row.status) for row in read(conn)] == [
            ("s1", "fired"),
            ("s2", "superseded"),
            ("s3", "pending"),
        ]


def test_a_step_is_inserted_once_and_one_waits_in_a_conversation(database: Database) -> None:
    with database.begin() as conn:
        add_step(conn, "s1", status="fired")
        (first,) = read(conn)
        anchored = replace(first, id="s2")
        next_one = replace(first, id="s3", anchor=IdleAnchor("m2", (2, 0)))
        beside = replace(first, id="s4", anchor=IdleAnchor("m3", (3, 0)))
        assert insert_idle(conn, [anchored]) == frozenset()
        assert insert_idle(conn, [next_one]) == {"s3"}
        assert insert_idle(conn, [beside]) == frozenset()
        assert lock_idle(conn, ["s3", "s4"]).keys() == {"s3"}
        assert [row.id for row in lock_open_idle(conn, [("w1", "s1"), ("w2", "s1")])] == ["s3"]
        assert supersede_waiting(conn, [("w1", "s1")], DUE) == {"s3"}
        assert insert_idle(conn, [beside]) == {"s4"}


def test_only_first_steps_that_their_conversation_s_end_stopped_wait_again(database: Database) -> None:
    with database.begin() as conn:
        for id_, reason, index in (("s1", "conversation_closed", 0), ("s2", "customer_replied", 0)):
            add_step(conn, id_, status="stopped", reason=reason, step_index=index, ended_at=DUE)
        add_step(conn, "s3", status="stopped", reason="conversation_closed", step_index=1, ended_at=DUE)
        add_step(conn, "s4", status="stopped", reason="conversation_gone", run_id="r", ended_at=DUE)
        anchors = [("w1", id_, "m1") for id_ in ("s1", "s2", "s3", "s4")]
        assert revive_idle(conn, anchors, DUE) == {"s1"}
        first, *_ = read(conn)
        assert (first.status, first.reason, first.ended_at) == ("pending", None, None)


def test_a_step_is_claimed_once_handed_over_and_then_never_stuck(database: Database) -> None:
    with database.begin() as conn:
        add_step(conn, "s1", version=1)
        seen = due_steps(conn, now=DUE, most=9)
        (claim,) = claim_steps(conn, seen, now=DUE)
        assert claim_steps(conn, seen, now=DUE) == []
        (row,) = lock_claimed_steps(conn, [claim])
        assert stuck_steps(conn, before=DUE + SECOND, most=9) == [claim]
        assert hand_over(conn, [(row, "r1")], now=DUE) == {"s1"}
        assert hand_over(conn, [(row, "r2")], now=DUE) == frozenset()
        assert stuck_steps(conn, before=DUE + SECOND, most=9) == []
        assert return_steps(conn, [claim], before=DUE + SECOND, now=DUE) == frozenset()
        assert [(row.status, row.run_id) for row in read(conn)] == [("processing", "r1")]


@pytest.fixture(scope="module")
def crowded(database_of_a_module: str) -> Iterator[Database]:
    """Give a database of 20,000 steps, of which a quarter waits."""
    opened = open_database(database_of_a_module)
    fill_steps(opened, COUNT)
    yield opened
    opened.dispose()


TALKS = [("w0", "c1"), ("w1", "c41")]
Look = Callable[[Connection], object]
LOOKS: dict[str, Look] = {
    "due": lambda conn: due_steps(conn, now=DUE, most=500),
    "due_of_many": lambda conn: due_steps(conn, now=DUE, most=500, few=1),
    "claim": lambda conn: claim_steps(conn, [DueClaim(step_id(7), 1), DueClaim(new_id(), 1)], now=DUE),
    "lock_claimed": lambda conn: lock_claimed_steps(conn, [DueClaim(step_id(7), 1)]),
    "stuck": lambda conn: stuck_steps(conn, before=DUE, most=500),
    "return": lambda conn: return_steps(conn, [DueClaim(step_id(7), 1)], before=DUE, now=DUE),
    "lock": lambda conn: lock_idle(conn, [step_id(7), new_id()]),
    "open": lambda conn: lock_open_idle(conn, TALKS),
    "supersede": lambda conn: supersede_waiting(conn, TALKS, DUE),
    "settle": lambda conn: settle_idle(conn, [Settlement(step_id(7), None, IdleStatus.FAILED)], DUE),
    "revive": lambda conn: revive_idle(conn, [(*talk, "m1") for talk in TALKS], DUE),
    "forget": lambda conn: forget(conn, Ageing.IDLE_STEPS, before=DUE, most=500),
    "newest": lambda conn: newest_counting(conn, TALKS),
    "holders": lambda conn: workspaces_with_holders(conn, ["w0", "w1"]),
}


@pytest.mark.parametrize("name", LOOKS)
def test_steps_are_found_along_their_indexes(crowded: Database, name: str) -> None:
    with crowded.begin() as conn:
        with statements(conn) as seen:
            LOOKS[name](conn)
        plans = [explain(conn, statement, values) for statement, values in seen]
        conn.rollback()
    assert plans
    for plan in plans:
        assert "Seq Scan on idle_steps" not in plan, plan
        assert not any(f"SCAN {alias}\n" in f"{plan}\n" for alias in ("r", "e", "idle_steps")), plan
