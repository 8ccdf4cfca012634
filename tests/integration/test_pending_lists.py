"""Lists of what waits: which rows a page holds, how it goes on, and that it walks along one index."""

from collections.abc import Iterator
from typing import Any

import pytest

from shared.db.engine import Database, open_database
from shared.db.pending_lists import PendingPage, PendingQuery, list_pending, page_of_pending
from shared.db.walking import SCANNED
from shared.model.pending import PendingSkip, PendingStatus
from shared.model.subjects import SubjectRef
from tests.pending_rows import SUBJECTS, due_at, fill_pending, pending_id, state
from tests.statements import explain, statements

COUNT = 20_000
NOT_A_WALK = ("Seq Scan on pending_executions", "SCAN r", "pending_executions_pkey")
SORTS = ("Sort", "TEMP B-TREE")
CONVERSATION = SubjectRef("conversation", "c3")
WAITS = {"status": PendingStatus.PENDING}

QUERIES: list[dict[str, Any]] = [
    {},
    WAITS,
    {**WAITS, "automation_id": "a1-3"},
    {**WAITS, "subject": CONVERSATION},
    {**WAITS, "subject": CONVERSATION, "automation_id": "a1-1"},
    {"status": PendingStatus.EXECUTED},
    {"automation_id": "a1-3"},
    {"automation_id": "a1-3", "status": PendingStatus.SKIPPED},
    {"skip_reason": PendingSkip.EXPIRED},
    {"subject": CONVERSATION},
    {"subject": CONVERSATION, "automation_id": "a1-1"},
]


@pytest.fixture(scope="module")
def filled(database_of_a_module: str) -> Iterator[Database]:
    """Give a database with twenty thousand rows, for all tests of this module."""
    database = open_database(database_of_a_module)
    fill_pending(database, COUNT)
    yield database
    database.dispose()


def wanted(query: dict[str, Any]) -> list[str]:
    """Name by arithmetic what is asked for, in its order."""
    numbers = [number for number in range(COUNT) if number % 2 == 1 and fits(number, query)]
    if query.get("status") is PendingStatus.PENDING:
        return [pending_id(number) for number in sorted(numbers, key=lambda each: (due_at(each), each))]
    return [pending_id(number) for number in reversed(numbers)]


def fits(number: int, query: dict[str, Any]) -> bool:
    status, reason = state(number)
    found = {
        "status": status,
        "skip_reason": reason,
        "automation_id": f"a1-{number // 2 % 20}",
        "subject": SubjectRef("conversation", f"c{number % SUBJECTS}"),
    }
    return all(found[name] == value for name, value in query.items())


def pages(database: Database, query: dict[str, Any], most: int) -> list[PendingPage]:
    found: list[PendingPage] = []
    after = None
    with database.read() as conn:
        while not found or after is not None:
            found.append(page_of_pending(conn, PendingQuery("w1", most, after=after, **query)))
            after = found[-1].after
    return found


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_the_pages_together_hold_each_row_that_fits_once_in_order(
    filled: Database, query: dict[str, Any]
) -> None:
    ids = wanted(query)
    assert ids
    read = pages(filled, query, 197)
    assert [row.id for page in read for row in page.rows] == ids
    assert all(len(page.rows) <= 197 for page in read)
    with filled.read() as conn:
        assert [row.id for row in list_pending(conn, PendingQuery("w1", 7, **query))] == ids[:7]


def test_a_page_of_what_is_rare_looks_only_so_far_and_goes_on(filled: Database) -> None:
    with filled.read() as conn:
        first = page_of_pending(conn, PendingQuery("w1", 100, subject=CONVERSATION))
    assert first.after is not None
    assert first.after.id == pending_id(COUNT - 1 - 2 * (SCANNED - 1))
    assert len(first.rows) < len(wanted({"subject": CONVERSATION}))


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_every_page_walks_along_one_index(filled: Database, query: dict[str, Any]) -> None:
    with filled.read() as conn:
        with statements(conn) as seen:
            page_of_pending(conn, PendingQuery("w1", 50, **query))
        plans = [explain(conn, *each) for each in seen]
    for told in plans:
        assert not [bad for bad in NOT_A_WALK if bad in told], told
        if query in ({}, WAITS):
            assert not [bad for bad in SORTS if bad in told], told
