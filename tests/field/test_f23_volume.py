"""The list slows down with history.

Elsewhere opening the list of runs took minutes past a few million rows. Here a page walks down one index and
looks only so far (tests/integration/test_run_lists.py holds the plans); this holds the times.
"""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest

from shared.db.engine import Database, open_database
from shared.db.run_lists import RunQuery, page_of_runs
from shared.model.moves import RunStatus
from tests.conftest import BACKENDS
from tests.volume import fill

FEW, MANY, WORKSPACES = 1_000, 40_000, 50
ROUNDS = 25
NOISE_S = 0.01

LISTS: list[dict[str, Any]] = [
    {"automation_id": "a1-3"},
    {"status": RunStatus.FAILED},
    {},
]


@pytest.fixture(scope="module", params=BACKENDS)
def sizes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Database]]:
    """Give a database with few finished runs, and one with many."""
    opened: list[Database] = []
    lent: list[str] = []
    for count in (FEW, MANY):
        if request.param == "sqlite":
            path = tmp_path_factory.mktemp("volume") / "knockon.db"
            path.write_bytes(request.getfixturevalue("sqlite_template").read_bytes())
            opened.append(open_database(f"sqlite:///{path}"))
        else:
            lender = request.getfixturevalue("postgres_lender")
            lent.append(lender.lend())
            opened.append(open_database(lender.server.url(lent[-1])))
        fill(opened[-1], count, WORKSPACES)
    yield opened
    for database in opened:
        database.dispose()
    for name in lent:
        request.getfixturevalue("postgres_lender").take_back(name)


def spent(database: Database, query: dict[str, Any]) -> float:
    """Give the seconds that the newest page takes."""
    with database.read() as conn:
        begun = time.perf_counter()
        page_of_runs(conn, RunQuery("w1", 50, **query))
        return time.perf_counter() - begun


@pytest.mark.parametrize("query", LISTS, ids=str)
def test_a_page_takes_no_longer_with_forty_times_the_history(
    sizes: list[Database], query: dict[str, Any]
) -> None:
    few, many = sizes
    rounds = [(spent(few, query), spent(many, query)) for _ in range(ROUNDS)]
    with_few, with_many = (median(times) for times in zip(*rounds, strict=True))
    assert with_many <= 2 * with_few + NOISE_S
