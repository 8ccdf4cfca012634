"""Which due rows come first, and that choosing them costs what is due, not what waits."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection

from shared.db.engine import Database, open_database
from shared.db.pending_due import FEW, DueClaim, claim_due, due_rows, return_stuck, stuck_claims
from shared.db.sql import sql
from shared.ids import new_id
from tests.statements import explain, statements
from tests.waiting_rows import DUE, add_waiting, waiting_id

SECOND = timedelta(seconds=1)
COUNT = 20_000


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    yield opened
    opened.dispose()


def chosen(database: Database, most: int, now: datetime = DUE, few: int = FEW) -> list[str]:
    with database.read() as conn:
        return [each.id for each in due_rows(conn, now=now, most=most, few=few)]


def workspaces(database: Database, ids: list[str]) -> list[str]:
    with database.read() as conn:
        rows = sql("SELECT id, workspace_id FROM pending_executions").run(conn).all()
    owners = {row.id: row.workspace_id for row in rows}
    return [owners[each] for each in ids]


def test_what_is_due_comes_in_the_order_in_which_it_came_due(database: Database) -> None:
    ids = add_waiting(database, "w1", [3, 1, 2, -5])
    assert chosen(database, 9) == [ids[0], ids[2], ids[1]]
    assert chosen(database, 2) == [ids[0], ids[2]]
    assert chosen(database, 9, DUE + 5 * SECOND) == [ids[0], ids[2], ids[1], ids[3]]


@pytest.mark.parametrize("few", [2_000, 100], ids=["all_are_looked_at", "each_tenant_is_looked_at"])
def test_the_few_rows_of_a_tenant_do_not_wait_for_the_many_of_another(database: Database, few: int) -> None:
    many = add_waiting(database, "big", [1_000 - number for number in range(500)])
    few_ids = add_waiting(database, "small", range(5, 0, -1))
    add_waiting(database, "later", range(-9, 0))
    first = chosen(database, 100, few=few)
    assert workspaces(database, first[:11]) == ["big", "small"] * 5 + ["big"]
    assert [each for each in first if each in set(few_ids)] == few_ids
    assert [each for each in first if each in set(many)] == many[:95]
    assert len(first) == 100


def test_both_ways_of_choosing_choose_alike(database: Database) -> None:
    for number in range(12):
        add_waiting(database, f"w{number}", [(each * 7 + number) % 40 for each in range(number * 3)])
    by_all = chosen(database, 60)
    assert chosen(database, 60, few=10) == by_all
    assert len(set(by_all)) == 60


def test_nothing_is_chosen_where_nothing_waits(database: Database) -> None:
    assert chosen(database, 60) == chosen(database, 60, few=1) == []


def test_a_row_is_claimed_once_and_as_it_was_seen(database: Database) -> None:
    add_waiting(database, "w1", [1, 2, 3])
    with database.read() as conn:
        seen = due_rows(conn, now=DUE, most=9)
    outdated = [DueClaim(seen[0].id, seen[0].version + 1), *seen[1:]]
    with database.begin() as conn:
        assert [each.id for each in claim_due(conn, outdated, now=DUE)] == [each.id for each in seen[1:]]
        assert claim_due(conn, seen, now=DUE) == [DueClaim(seen[0].id, 2)]
        assert claim_due(conn, seen, now=DUE) == []


def test_a_claim_passes_over_what_another_transaction_holds(postgres_url: str) -> None:
    database = open_database(postgres_url)
    add_waiting(database, "w1", [2, 1])
    with database.read() as conn:
        seen = due_rows(conn, now=DUE, most=9)
    with database.begin() as first, database.begin() as second:
        assert claim_due(first, seen[:1], now=DUE)
        assert [each.id for each in claim_due(second, seen, now=DUE)] == [seen[1].id]
    database.dispose()


def test_only_claims_that_are_old_enough_come_back(database: Database) -> None:
    add_waiting(database, "w1", [1, 2])
    with database.begin() as conn:
        seen = due_rows(conn, now=DUE, most=9)
        claim_due(conn, seen[:1], now=DUE)
        (later,) = claim_due(conn, seen[1:], now=DUE + SECOND)
    with database.begin() as conn:
        (stuck,) = stuck_claims(conn, before=DUE + SECOND, most=9)
        both = [stuck, later]
        assert return_stuck(conn, both, before=DUE + SECOND, now=DUE + SECOND) == {seen[0].id}
        assert return_stuck(conn, both, before=DUE + SECOND, now=DUE + SECOND) == frozenset()
    assert chosen(database, 9) == [seen[0].id]


@pytest.fixture(scope="module")
def crowded(database_of_a_module: str) -> Iterator[Database]:
    """Give a database in which 20,000 rows of 50 workspaces wait, 100 are due, and 20,000 are over."""
    opened = open_database(database_of_a_module)
    for number in range(50):
        add_waiting(opened, f"w{number}", [1, 2, *(-1 - each for each in range(COUNT // 50))])
        add_waiting(opened, f"w{number}", [each + 1 for each in range(COUNT // 50)], status="executed")
    with opened.begin() as conn:
        sql("ANALYZE pending_executions").run(conn)
    yield opened
    opened.dispose()


Look = Callable[[Connection], object]
LOOKS: dict[str, Look] = {
    "due": lambda conn: due_rows(conn, now=DUE, most=500),
    "due_of_many": lambda conn: due_rows(conn, now=DUE, most=500, few=1),
    "claim": lambda conn: claim_due(conn, [DueClaim(waiting_id(7), 1), DueClaim(new_id(), 1)], now=DUE),
    "stuck": lambda conn: stuck_claims(conn, before=DUE, most=500),
}


@pytest.mark.parametrize("name", LOOKS)
def test_choosing_and_claiming_walk_along_their_indexes(crowded: Database, name: str) -> None:
    with crowded.begin() as conn:
        with statements(conn) as seen:
            LOOKS[name](conn)
        plans = [explain(conn, statement, values) for statement, values in seen]
        conn.rollback()
    assert plans
    for plan in plans:
        assert "Seq Scan on pending_executions" not in plan, plan
        assert not any(f"SCAN {alias}\n" in f"{plan}\n" for alias in ("r", "e", "pending_executions")), plan


def test_what_is_due_is_read_from_the_index_of_what_is_due(crowded: Database) -> None:
    with crowded.read() as conn:
        with statements(conn) as seen:
            assert len(due_rows(conn, now=DUE, most=500)) == 100
        (plan,) = [explain(conn, statement, values) for statement, values in seen]
    assert "ix_pending_executions_due" in plan
