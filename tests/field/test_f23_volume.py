"""The list slows down with history.

Elsewhere opening the list of runs took minutes past a few million rows. Here a page walks down one index and
looks only so far (tests/integration/test_run_lists.py holds the plans); this holds how much is looked at.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from shared.db.engine import Database, open_database
from shared.db.run_lists import RunQuery, page_of_runs
from shared.model.moves import RunStatus
from tests.conftest import BACKENDS
from tests.volume import fill
from tests.work import work_of

FEW, MANY, WORKSPACES = 4_000, 40_000, 4
FULL_PAGE = 4_000  # where few rows fit, the page of the many is fuller; all of them cost ten times as much

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


@pytest.mark.parametrize("query", LISTS, ids=str)
def test_a_page_does_no_more_with_ten_times_the_history(sizes: list[Database], query: dict[str, Any]) -> None:
    page = partial(page_of_runs, query=RunQuery("w1", 50, **query))
    with_few, with_many = (work_of(database, page) for database in sizes)
    assert 0 < with_many <= 2 * with_few + FULL_PAGE
