"""Whether the processes keep what they no longer need: their memory after each tenth of many events."""

from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.contenders import knockon, running
from benchmarks.progress import Rows, publish
from benchmarks.scenario import TWO_HUNDRED, events
from benchmarks.sites import Backend, Servers

SAMPLES: Final = 10


def measure_memory(servers: Servers, count: int) -> Mapping[str, Sequence[float]]:
    """Give each process's resident memory in MiB after each tenth of `count` events."""
    contender = knockon(Backend.POSTGRES)
    site = servers.fresh(contender.backend)
    contender.prepare(site)
    rows = Rows(site)
    found: dict[str, list[float]] = {role: [] for role in contender.roles}
    step = max(1, count // SAMPLES)
    with running(contender, site) as started:
        for sample in range(1, SAMPLES + 1):
            publish(site, list(events(TWO_HUNDRED, step)))
            rows.wait_done(sample * step, started)
            for role, held in started.rss_mib().items():
                found[role].append(held)
    rows.close()
    return found
