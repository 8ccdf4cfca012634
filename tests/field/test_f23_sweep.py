"""The tick slows down with history, and one who has much to do holds up all others.

Elsewhere a pass over a million contacts took days although little was due. Here a sweep reads what is due
from an index of what waits, so that neither what is over nor what is due later costs anything
(`python -m benchmarks sweep` measures it with a million rows; tests/integration/test_delayed_due.py holds the
plans). What is due is taken of each workspace in turn.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

import pytest

from benchmarks.sites import Site
from benchmarks.sweep import EXPIRY
from benchmarks.waiting import store_due, store_rules, store_waiting
from shared.db.pending_due import due_rows
from shared.db.sql import sql
from shared.services.backends import Backends, open_backends
from shared.settings import Settings
from tests.conftest import BACKENDS
from tests.work import work_of
from timers.delayed import DelayedSweep
from timers.sweeping import CHOSEN

FEW, MANY, WORKSPACES = 1_000, 40_000, 50
DUE, ROUNDS = 10, 3
PASSES = 3

OVER = sql(
    "UPDATE pending_executions SET status = 'skipped', skip_reason = 'conditions_changed', ended_at = due_at"
)
FIRED = sql("SELECT workspace_id FROM automation_runs ORDER BY id")


@pytest.fixture(params=BACKENDS)
def sizes(request: pytest.FixtureRequest, redis_url: str, tmp_path: Path) -> Iterator[list[Backends]]:
    """Give deployments with little and with much history; as much as that waits till tomorrow."""
    opened: list[Backends] = []
    with ExitStack() as stack:
        for count in (FEW, MANY):
            url = _database(request, stack, tmp_path / f"{count}.db")
            settings = Settings.model_validate({"redis_url": redis_url, "database_url": url})
            backends = open_backends(settings, 2)
            stack.callback(backends.close)
            store_rules(backends.database, WORKSPACES)
            store_waiting(Site(redis_url, url, tmp_path), backends.database, count, WORKSPACES)
            opened.append(backends)
        yield opened


def _database(request: pytest.FixtureRequest, stack: ExitStack, path: Path) -> str:
    if request.param == "sqlite":
        path.write_bytes(request.getfixturevalue("sqlite_template").read_bytes())
        return f"sqlite:///{path}"
    lender = request.getfixturevalue("postgres_lender")
    name = lender.lend()
    stack.callback(lender.take_back, name)
    return str(lender.server.url(name))


def work_of_choosing(backends: Backends) -> int:
    """Let ten rows come due, count what it takes to choose them, and fire them."""
    now = datetime.now(UTC)
    store_due(backends.database, [(f"ws_{number}", now) for number in range(DUE)])
    work = work_of(backends.database, partial(due_rows, now=now, most=CHOSEN))
    DelayedSweep(backends, EXPIRY).pass_once()
    return work


def fired(backends: Backends) -> Sequence[str]:
    """Give the workspaces of all runs, in the order in which these were made."""
    with backends.database.read() as conn:
        return list(FIRED.run(conn).scalars())


@pytest.mark.parametrize("history", ["it waits", "it is over"])
def test_a_sweep_looks_at_no_more_with_forty_times_the_rows(sizes: list[Backends], history: str) -> None:
    if history == "it is over":
        for backends in sizes:
            with backends.database.begin() as conn:
                OVER.run(conn)
    rounds = [[work_of_choosing(backends) for backends in sizes] for _ in range(ROUNDS)]
    with_few, with_many = (median(work) for work in zip(*rounds, strict=True))
    assert 0 < with_many <= 2 * with_few
    assert [len(fired(backends)) for backends in sizes] == [DUE * ROUNDS] * 2


def test_what_is_due_is_taken_of_each_workspace_in_turn(sizes: list[Backends]) -> None:
    backends, _ = sizes
    now = datetime.now(UTC)
    backlog = [("ws_0", now - timedelta(seconds=900 - number)) for number in range(600)]
    others = [(f"ws_{number}", now) for number in range(1, 50) for _ in range(2)]
    store_due(backends.database, [*backlog, *others])
    sweep = DelayedSweep(backends, EXPIRY)
    for _ in range(PASSES):  # a pass leaves the rest to the next one where the machine is slow
        sweep.pass_once()
    order = fired(backends)
    assert len(order) == 600 + 98
    assert set(islice(order, 100)) == {f"ws_{number}" for number in range(50)}
    assert order[100:] == ["ws_0"] * 598
