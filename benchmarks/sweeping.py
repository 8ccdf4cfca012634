"""The lines of a report about delayed automations: what a pass costs, and how late what is due ends."""

from collections.abc import Callable
from typing import Final

from benchmarks.figures import median, percentile
from benchmarks.report import Line
from benchmarks.sites import Backend, Servers
from benchmarks.sweep import DUE, FEW, WORKSPACES, Lateness, Load, measure_lateness, measure_passes

WAITING: Final = 100_000
EACH: Final = 20
BACKLOG: Final = 20_000


def compare_sweep(servers: Servers, many: int, say: Callable[[str], None]) -> list[Line]:
    """Measure passes beside `many` rows that wait, then lateness beside a tenth of them, on each database."""
    lines = []
    waiting = min(WAITING, many)
    for backend in Backend:
        found = measure_passes(servers, backend, many)
        few, with_many = median(found.few_ms), median(found.many_ms)
        say(f"sweep: {backend}: {few:.1f} ms with {FEW:,} waiting, {with_many:.1f} ms with {many:,}")
        told = f"{DUE} due, {many:,} wait; p95 {percentile(found.many_ms, 95):.1f}, with {FEW:,} {few:.1f}"
        lines.append(Line("sweep", backend, "ms/pass", [with_many], [few], told))
        for name, load in (
            ("due in one second", Load(waiting, EACH, 0)),
            ("beside a backlog", Load(waiting, EACH, min(BACKLOG, waiting // 5))),
        ):
            late = measure_lateness(servers, backend, load)
            note = f"{WORKSPACES * EACH:,} due of {waiting:,}, {load.backlog:,} more of one workspace"
            lines += _late(backend, f"late, {name}", late["others"], note)
            say(f"sweep: {backend}, {name}: ended p99 {percentile(late['others'].ended_s, 99):.2f} s")
            if load.backlog:
                lines += _late(backend, "late, the backlog itself", late["one"], note)
    return lines


def _late(backend: Backend, measure: str, late: Lateness, note: str) -> list[Line]:
    return [
        Line(f"{measure}, {until} p{percent}", backend, "s", [percentile(values, percent)], (), note)
        for until, values in (("run made", late.made_s), ("run ended", late.ended_s))
        for percent in (50, 99)
    ]
