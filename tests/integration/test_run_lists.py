"""Lists of runs: which rows a page holds, how it goes on, and that it walks down one index."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shared.db.engine import Database, open_database
from shared.db.run_lists import RunPage, RunQuery, list_runs, page_of_runs
from shared.db.walking import SCANNED
from shared.model.moves import RunStatus
from shared.model.subjects import SubjectRef
from tests.statements import explain, statements
from tests.volume import fill, made_at, run_id

COUNT = 20_000
NOT_A_WALK = ("Seq Scan on automation_runs", "SCAN r", "automation_runs_pkey")
SORTS = ("Sort", "TEMP B-TREE")
LOOKED = {"trigger_type", "subject"}

QUERIES: list[dict[str, Any]] = [
    {},
    {"automation_id": "a1-3"},
    {"status": RunStatus.FAILED},
    {"status": RunStatus.SUCCEEDED},
    {"automation_id": "a1-3", "status": RunStatus.SUCCEEDED},
    {"automation_id": "a1-0", "status": RunStatus.FAILED},
    {"trigger_type": "MANUAL"},
    {"subject": SubjectRef("record", "r3")},
    {"since": made_at(100), "until": made_at(400)},
    {"automation_id": "a1-3", "since": made_at(19_000)},
    {"status": RunStatus.FAILED, "until": made_at(9_000), "trigger_type": "EVENT"},
    {"before": run_id(500)},
]


@pytest.fixture(scope="module")
def filled(database_of_a_module: str) -> Iterator[Database]:
    """Give a database with twenty thousand runs, for all tests of this module."""
    database = open_database(database_of_a_module)
    fill(database, COUNT)
    yield database
    database.dispose()


def fits(number: int, query: dict[str, Any]) -> bool:
    """Say by arithmetic whether the run of this number is one that is asked for, in w1."""
    failed = number % 1_000 < 2
    checks: dict[str, Callable[[Any], bool]] = {
        "automation_id": lambda wanted: f"a1-{number // 2 % 20}" == wanted,
        "status": lambda wanted: failed is (wanted is RunStatus.FAILED),
        "trigger_type": lambda wanted: (number % 10_000 < 2) is (wanted == "MANUAL"),
        "subject": lambda wanted: f"r{number % 5_000}" == wanted.id,
        "since": lambda wanted: made_at(number) >= wanted,
        "until": lambda wanted: made_at(number) < wanted,
        "before": lambda wanted: run_id(number) < wanted,
    }
    return number % 2 == 1 and all(checks[name](wanted) for name, wanted in query.items())


def pages(database: Database, query: dict[str, Any], most: int) -> list[RunPage]:
    """Read pages up to the last one."""
    found: list[RunPage] = []
    given = dict(query)
    with database.read() as conn:
        while not found or found[-1].before is not None:
            found.append(page_of_runs(conn, RunQuery("w1", most, **given)))
            given["before"] = found[-1].before
    return found


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_the_pages_together_hold_each_run_that_fits_once_newest_first(
    filled: Database, query: dict[str, Any]
) -> None:
    wanted = [run_id(number) for number in range(COUNT - 1, -1, -1) if fits(number, query)]
    assert wanted
    read = pages(filled, query, 199)
    assert [row.id for page in read for row in page.rows] == wanted
    assert all(len(page.rows) <= 199 for page in read)
    with filled.read() as conn:
        assert [row.id for row in list_runs(conn, RunQuery("w1", 30, **query))] == wanted[:30]


def test_a_page_of_what_is_rare_looks_only_so_far_and_goes_on(filled: Database) -> None:
    first, *_ = read = pages(filled, {"subject": SubjectRef("record", "r3")}, 3)
    assert [len(page.rows) for page in read] == [2, 2, 0]
    assert first.before == run_id(COUNT - 1 - 2 * (SCANNED - 1))


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_every_page_walks_down_one_index(filled: Database, query: dict[str, Any]) -> None:
    looks = bool(LOOKED & query.keys()) or {"automation_id", "status"} <= query.keys()
    looks = looks or query.get("status") is RunStatus.SUCCEEDED
    with filled.read() as conn:
        with statements(conn) as seen:
            page_of_runs(conn, RunQuery("w1", 50, **query))
        plans = [explain(conn, *each) for each in seen]
    assert len(plans) == (2 if looks else 1)
    for told in plans:
        assert not [bad for bad in NOT_A_WALK if bad in told], told
    if not looks and "status" not in query:
        assert not [bad for bad in SORTS if bad in plans[0]], plans[0]
