"""Lists of idle steps: which rows a page holds, how it goes on, and that it walks along one index."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from shared.db.engine import Database, open_database
from shared.db.idle_lists import IdlePage, IdleQuery, list_idle_steps, page_of_idle_steps
from shared.db.walking import SCANNED
from shared.model.idle_steps import IdleStatus, IdleStop
from tests.idle_rows import AGENTS, DUE, conversation_of, due_at, fill_steps, state, step_id
from tests.statements import explain, statements

COUNT = 20_000
NOT_A_WALK = ("Seq Scan on idle_steps", "SCAN r", "idle_steps_pkey")
SORTS = ("Sort", "TEMP B-TREE")
SOON = DUE + timedelta(minutes=20)
WAITS = {"status": IdleStatus.PENDING}

QUERIES: list[dict[str, Any]] = [
    {},
    WAITS,
    {**WAITS, "agent_id": "a3"},
    {**WAITS, "due_before": SOON},
    {**WAITS, "conversation_id": "c1"},
    {"status": IdleStatus.FIRED},
    {"agent_id": "a3", "due_before": SOON},
    {"reason": IdleStop.CUSTOMER_REPLIED},
    {"conversation_id": "c43"},
    {"conversation_id": "c43", "status": IdleStatus.STOPPED},
]


@pytest.fixture(scope="module")
def filled(database_of_a_module: str) -> Iterator[Database]:
    """Give a database with twenty thousand rows, for all tests of this module."""
    database = open_database(database_of_a_module)
    fill_steps(database, COUNT)
    yield database
    database.dispose()


def wanted(query: dict[str, Any]) -> list[str]:
    """Name by arithmetic what is asked for, in its order."""
    numbers = [number for number in range(COUNT) if number % 2 == 1 and fits(number, query)]
    if query.get("status") is IdleStatus.PENDING and "conversation_id" not in query:
        return [step_id(number) for number in sorted(numbers, key=lambda each: (due_at(each), each))]
    return [step_id(number) for number in reversed(numbers)]


def fits(number: int, query: dict[str, Any]) -> bool:
    status, reason = state(number)
    found = {
        "status": status,
        "reason": reason,
        "agent_id": f"a{number // 2 % AGENTS}",
        "conversation_id": conversation_of(number),
    }
    given = dict(query)
    due_before = given.pop("due_before", None)
    is_in_time = due_before is None or due_at(number) < due_before
    return is_in_time and all(found[name] == value for name, value in given.items())


def pages(database: Database, query: dict[str, Any], most: int) -> list[IdlePage]:
    found: list[IdlePage] = []
    after = None
    with database.read() as conn:
        while not found or after is not None:
            found.append(page_of_idle_steps(conn, IdleQuery("w1", most, after=after, **query)))
            after = found[-1].after
    return found


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_the_pages_together_hold_each_row_that_fits_once_in_order(
    filled: Database, query: dict[str, Any]
) -> None:
    ids = wanted(query)
    assert ids
    read = pages(filled, query, 197)
    assert [step.row.id for page in read for step in page.rows] == ids
    assert all(len(page.rows) <= 197 for page in read)
    with filled.read() as conn:
        assert [step.row.id for step in list_idle_steps(conn, IdleQuery("w1", 7, **query))] == ids[:7]


def test_a_page_of_what_is_rare_looks_only_so_far_and_goes_on(filled: Database) -> None:
    with filled.read() as conn:
        first = page_of_idle_steps(conn, IdleQuery("w1", 500, agent_id="a3"))
    assert first.after is not None
    assert first.after.id == step_id(COUNT - 1 - 2 * (SCANNED - 1))
    assert len(first.rows) < len(wanted({"agent_id": "a3"}))


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_every_page_walks_along_one_index(filled: Database, query: dict[str, Any]) -> None:
    with filled.read() as conn:
        with statements(conn) as seen:
            page_of_idle_steps(conn, IdleQuery("w1", 50, **query))
        plans = [explain(conn, *each) for each in seen]
    for told in plans:
        assert not [bad for bad in NOT_A_WALK if bad in told], told
        if query in ({}, WAITS):
            assert not [bad for bad in SORTS if bad in told], told
