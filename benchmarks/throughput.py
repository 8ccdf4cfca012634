"""How many events a second go all the way: stream, match, dedupe, run, claim, condition, action, log, end."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from benchmarks.contenders import Contender, running
from benchmarks.figures import per_second
from benchmarks.progress import Rows, publish
from benchmarks.scenario import TWO_HUNDRED, events
from benchmarks.sites import Servers

FIRST_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Throughput:
    """One round: all events stood on the stream before the processes were started.

    The time counts from the first run that was made to the last one that ended. `cpu_ms` is each process's
    processor time for one event, from when the first runs were seen on: empty if most were there by then.
    """

    events: int
    lines: int
    first: datetime
    last: datetime
    cpu_ms: dict[str, float]

    @property
    def per_s(self) -> float:
        """Events a second."""
        return per_second(self.events, self.first, self.last)


def measure_throughput(contender: Contender, servers: Servers, count: int) -> Throughput:
    """Do one round with `count` events. Raises AssertionError unless every one of them succeeded once."""
    site = servers.fresh(contender.backend)
    contender.prepare(site)
    publish(site, list(events(TWO_HUNDRED, count)))
    rows = Rows(site)
    with running(contender, site) as started:
        rows.wait_made(1, started, FIRST_POLL_S)
        before, made = {**started.cpu_s(), **servers.cpu_s(contender.backend)}, rows.made()
        rows.wait_done(count, started)
        after = {**started.cpu_s(), **servers.cpu_s(contender.backend)}
    first, last = rows.span()
    lines = rows.lines()
    rows.close()
    spent = {role: (after[role] - before[role]) * 1000 / (count - made) for role in after if made < count / 2}
    return Throughput(count, lines, first, last, spent)
