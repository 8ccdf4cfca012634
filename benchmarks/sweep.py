"""What a sweep costs, whatever waits; and how late what is due ends, through timers and worker.

The cost is that of one pass of `DelayedSweep` with ten due rows: choosing, claiming, looking at conditions,
making runs, waking them. Passes with few rows waiting and with many take turns, so that what else the machine
does meets both alike.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

from benchmarks.contenders import Contender, running
from benchmarks.progress import Rows
from benchmarks.sites import Backend, Servers, Site
from benchmarks.waiting import spread, store_due, store_rules, store_waiting
from shared.db.sql import sql
from shared.db.types import must_instant
from shared.services.backends import Backends, open_backends
from shared.settings import Settings
from timers.delayed import DelayedSweep

FEW: Final = 1_000
MANY: Final = 1_000_000
DUE: Final = 10
PASSES: Final = 100
WARM_UP: Final = 10
WORKSPACES: Final = 50
EXPIRY: Final = timedelta(hours=72)
LEAD: Final = timedelta(seconds=15)
SECOND: Final = timedelta(seconds=1)
ALONE: Final = "ws_0"

FIRED: Final = sql(
    """
    SELECT r.workspace_id, r.due_at, a.created_at, a.ended_at
    FROM pending_executions r JOIN automation_runs a ON a.id = r.run_id
    """
)


@dataclass(frozen=True, slots=True)
class PassTimes:
    """How long passes took, in milliseconds, with few rows waiting and with many."""

    few_ms: Sequence[float]
    many_ms: Sequence[float]


@dataclass(frozen=True, slots=True)
class Lateness:
    """Seconds from when each was due until its run was made, and until it had ended."""

    made_s: Sequence[float]
    ended_s: Sequence[float]


@dataclass(frozen=True, slots=True)
class Load:
    """How much waits; `each` order of every workspace is due in one second, `backlog` more of one of them."""

    waiting: int
    each: int
    backlog: int


def measure_passes(servers: Servers, backend: Backend, many: int) -> PassTimes:
    """Sweep with ten due rows over and over, beside a thousand that wait and beside `many`."""
    sites = (servers.fresh(backend), servers.beside(backend))
    with ExitStack() as stack:
        opened = [_opened(stack, site) for site in sites]
        for site, backends, count in zip(sites, opened, (FEW, many), strict=True):
            store_rules(backends.database, WORKSPACES)
            store_waiting(site, backends.database, count, WORKSPACES)
        sweeps = [DelayedSweep(backends, EXPIRY) for backends in opened]
        rounds = [
            [_pass_ms(backends, sweep) for backends, sweep in zip(opened, sweeps, strict=True)]
            for _ in range(WARM_UP + PASSES)
        ]
        for backends in opened:
            fired = len(_fired(backends))
            assert fired == DUE * (WARM_UP + PASSES), f"only {fired} fired"
    few, many_ms = zip(*rounds[WARM_UP:], strict=True)
    return PassTimes(few, many_ms)


def measure_lateness(servers: Servers, backend: Backend, load: Load) -> Mapping[str, Lateness]:
    """Let timers and a worker fire what is due; give the lateness of the one workspace and of all others."""
    site = servers.fresh(backend)
    with ExitStack() as stack:
        backends = _opened(stack, site)
        store_rules(backends.database, WORKSPACES)
        places = [f"ws_{number}" for number in range(WORKSPACES)]
        due = WORKSPACES * load.each + load.backlog
        store_waiting(site, backends.database, max(0, load.waiting - due), WORKSPACES)
        first = datetime.now(UTC) + LEAD + timedelta(milliseconds=due // 2)
        store_due(backends.database, [(ALONE, first)] * load.backlog)
        store_due(backends.database, spread(places, load.each, first, SECOND))
        assert datetime.now(UTC) < first - 5 * SECOND, "writing what waits took too long"
        rows = Rows(site)
        with running(_program(backend), site) as started:
            rows.wait_done(due, started)
        rows.close()
        fired = _fired(backends)
    return MappingProxyType(
        {
            name: Lateness([late[1] for late in chosen], [late[2] for late in chosen])
            for name, chosen in (
                ("one", [late for late in fired if late[0] == ALONE]),
                ("others", [late for late in fired if late[0] != ALONE]),
            )
        }
    )


def _program(backend: Backend) -> Contender:
    rooms = {room: ("-P", "-m", "knockon", "run", room) for room in ("timers", "worker")}
    return Contender(f"knockon, {backend}", backend, MappingProxyType(rooms), lambda _: None)


def _opened(stack: ExitStack, site: Site) -> Backends:
    told = {"redis_url": site.redis_url, "database_url": site.database_url}
    backends = open_backends(Settings.model_validate(told), 2)
    stack.callback(backends.close)
    return backends


def _pass_ms(backends: Backends, sweep: DelayedSweep) -> float:
    now = datetime.now(UTC)
    store_due(backends.database, [(f"ws_{number}", now) for number in range(DUE)])
    begun = time.perf_counter()
    sweep.pass_once()
    return (time.perf_counter() - begun) * 1000


def _fired(backends: Backends) -> list[tuple[str, float, float]]:
    with backends.database.read() as conn:
        rows = FIRED.run(conn).all()
    found = []
    for row in rows:
        due = must_instant(row.due_at)
        made, ended = must_instant(row.created_at), row.ended_at and must_instant(row.ended_at)
        found.append((row.workspace_id, (made - due) / SECOND, ((ended or made) - due) / SECOND))
    return found
