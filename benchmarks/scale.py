"""What an event costs the matcher, whatever else listens: with a hundred automations and with many more."""

from typing import Final

from benchmarks.contenders import knockon, running
from benchmarks.progress import Rows, publish
from benchmarks.scenario import Mix, events
from benchmarks.sites import Backend, Servers

FEW: Final = Mix(workspaces=10, types=10)
MANY: Final = Mix(workspaces=1_000, types=100)
WARM_UP: Final = 1_000


def measure_match(servers: Servers, mix: Mix, count: int) -> float:
    """Give the matcher's processor time for one event, in milliseconds, once it has loaded the automations.

    The events are the same for every mix that holds the ten workspaces and types of `FEW`: each starts one
    automation.
    """
    matcher = knockon(Backend.POSTGRES, mix).only("matcher")
    site = servers.fresh(matcher.backend)
    matcher.prepare(site)
    rows = Rows(site)
    with running(matcher, site) as started:
        publish(site, list(events(FEW, WARM_UP)))
        rows.wait_made(WARM_UP, started)
        before = started.cpu_s()["matcher"]
        publish(site, list(events(FEW, count)))
        rows.wait_made(WARM_UP + count, started)
        spent = started.cpu_s()["matcher"] - before
    rows.close()
    return spent * 1000 / count
