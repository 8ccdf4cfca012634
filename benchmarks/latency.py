"""How long one event takes while the machine is nearly idle: 20 events a second, nothing waits in a queue."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from benchmarks.contenders import Contender, running
from benchmarks.figures import percentile
from benchmarks.progress import Rows, publish, publish_evenly
from benchmarks.scenario import TWO_HUNDRED, events
from benchmarks.sites import Servers

PER_S: Final = 20
SECONDS: Final = 15
WARM_UP: Final = 200


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from just before the publish: to the run's `created_at`, and to its `ended_at`."""

    created_ms: list[float]
    ended_ms: list[float]

    def created(self, percent: float) -> float:
        """Give a percentile of the time until the run was made."""
        return percentile(self.created_ms, percent)

    def ended(self, percent: float) -> float:
        """Give a percentile of the time until the run ended."""
        return percentile(self.ended_ms, percent)


def measure_latency(contender: Contender, servers: Servers, seconds: int = SECONDS) -> Latency:
    """Publish evenly to warm processes and read each run's times."""
    site = servers.fresh(contender.backend)
    contender.prepare(site)
    rows = Rows(site)
    count = PER_S * seconds
    with running(contender, site) as started:
        publish(site, list(events(TWO_HUNDRED, WARM_UP)))
        rows.wait_done(WARM_UP, started)
        sent = publish_evenly(site, list(events(TWO_HUNDRED, count)), PER_S)
        rows.wait_done(WARM_UP + count, started)
    times = rows.times()
    rows.close()
    return Latency(
        [_ms(at, times[event_id].created_at) for event_id, at in sent.items()],
        [_ms(at, times[event_id].ended_at) for event_id, at in sent.items()],
    )


def _ms(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds() * 1000
