"""`python -m benchmarks`: measure, print one table, write JSON, end."""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

import structlog
from rich.console import Console

from benchmarks.contenders import Contender, knockon, plain
from benchmarks.latency import PER_S, Latency, measure_latency
from benchmarks.lists import FEW as FEW_RUNS
from benchmarks.lists import MANY as MANY_RUNS
from benchmarks.lists import measure_lists
from benchmarks.memory import measure_memory
from benchmarks.profiling import record_profiles
from benchmarks.report import Line, Report, machine
from benchmarks.scale import FEW, MANY, measure_match
from benchmarks.sites import Backend, Servers, open_servers
from benchmarks.sweep import MANY as MANY_WAITING
from benchmarks.sweeping import compare_sweep
from benchmarks.throughput import Throughput, measure_throughput

RESULTS: Final = Path(__file__).parent / "results"
PLAIN_SHARE: Final = 5  # a plain program's rate does not depend on how much waits, and it is slow


class Part(StrEnum):
    """What can be measured alone."""

    THROUGHPUT = "throughput"
    LATENCY = "latency"
    SCALE = "scale"
    MEMORY = "memory"
    LISTS = "lists"
    SWEEP = "sweep"


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

    events: int
    rounds: int
    parts: Sequence[Part]
    json: Path
    is_profile: bool
    waiting: int


@dataclass(frozen=True, slots=True)
class Session:
    """What one `python -m benchmarks` works with; `say` tells how far it has come."""

    options: Options
    servers: Servers
    say: Callable[[str], None]


def read_options(arguments: Sequence[str]) -> Options:
    """Read the command line; it ends the process where that makes no sense."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", type=Part, nargs="*", help="measure these alone: " + ", ".join(Part))
    parser.add_argument("--events", type=_count, default=20_000, help="events of a round (default 20000)")
    parser.add_argument(
        "--rounds", type=_count, default=3, help="rounds of throughput and latency (default 3)"
    )
    parser.add_argument("--only", type=Part, choices=list(Part), action="append", help="measure this alone")
    parser.add_argument("--json", type=Path, default=RESULTS / "latest.json", help="where the figures go")
    parser.add_argument(
        "--waiting", type=_count, default=MANY_WAITING, help=f"rows that wait (default {MANY_WAITING})"
    )
    parser.add_argument("--profile", action="store_true", help="profile matcher and worker instead")
    found = parser.parse_args(arguments)
    parts = found.parts or found.only or list(Part)
    return Options(found.events, found.rounds, parts, found.json, found.profile, found.waiting)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def compare_throughput(session: Session) -> list[Line]:
    """Measure every program in turn, round by round, so that what else the machine does meets all alike."""
    share = max(1, session.options.events // PLAIN_SHARE)
    programs: Sequence[tuple[Contender, int]] = (
        (knockon(Backend.POSTGRES), session.options.events),
        (plain(), share),
        (knockon(Backend.SQLITE), session.options.events),
    )
    rounds: dict[str, list[Throughput]] = {program.name: [] for program, _ in programs}
    for number in range(1, session.options.rounds + 1):
        for program, count in programs:
            found = measure_throughput(program, session.servers, count)
            rounds[program.name].append(found)
            session.say(f"round {number}: {program.name}: {found.per_s:,.0f} events/s")
    theirs = [found.per_s for found in rounds[plain().name]]
    lines = []
    for program, count in programs:
        values = [found.per_s for found in rounds[program.name]]
        against = theirs if program.name != plain().name else ()
        note = f"{count:,} events, {rounds[program.name][-1].lines / count:g} log lines each"
        lines.append(Line("throughput", program.name, "events/s", values, against, note))
    for program, _ in programs:
        for role in rounds[program.name][0].cpu_ms:
            spent = [found.cpu_ms[role] for found in rounds[program.name] if found.cpu_ms]
            lines.append(Line(f"processor, {role}", program.name, "ms/event", spent))
    return lines


def compare_latency(session: Session) -> list[Line]:
    """Measure the way of single events, every program in turn, round by round."""
    programs = (knockon(Backend.POSTGRES), plain(), knockon(Backend.SQLITE))
    rounds: dict[str, list[Latency]] = {program.name: [] for program in programs}
    for number in range(1, session.options.rounds + 1):
        for program in programs:
            found = measure_latency(program, session.servers)
            rounds[program.name].append(found)
            told = f"p50 {found.ended(50):.1f} ms, p99 {found.ended(99):.1f} ms"
            session.say(f"round {number}: {program.name}: {told}")
    theirs = rounds[plain().name]
    lines = []
    for percent in (50, 99):
        for name, ours in rounds.items():
            ended = [found.ended(percent) for found in ours]
            against = [found.ended(percent) for found in theirs] if ours is not theirs else ()
            lines.append(Line(f"publish to end, p{percent}", name, "ms", ended, against, f"{PER_S} events/s"))
        for name, ours in rounds.items():
            lines.append(
                Line(f"publish to run, p{percent}", name, "ms", [each.created(percent) for each in ours])
            )
    return lines


def compare_scale(session: Session) -> list[Line]:
    """Measure the matcher with few automations and with many."""
    count = max(1, session.options.events // 2)
    few = measure_match(session.servers, FEW, count)
    session.say(f"match: {FEW.automations:,} automations: {few:.3f} ms/event")
    many = measure_match(session.servers, MANY, count)
    session.say(f"match: {MANY.automations:,} automations: {many:.3f} ms/event")
    return [
        Line("match", f"{FEW.automations:,} automations", "ms/event", [few], note="processor time"),
        Line("match", f"{MANY.automations:,} automations", "ms/event", [many], [few], "processor time"),
    ]


def watch_memory(session: Session) -> list[Line]:
    """Measure memory over many events; the ratio is the last sample in units of the first."""
    count = session.options.events * 5 // 2
    lines = []
    for role, samples in measure_memory(session.servers, count).items():
        session.say(f"memory: {role}: {' '.join(f'{each:.1f}' for each in samples)} MiB")
        note = f"after {count // len(samples):,} events {samples[0]:.1f}"
        lines.append(Line(f"memory after {count:,} events", role, "MiB", samples[-1:], samples[:1], note))
    return lines


def compare_lists(session: Session) -> list[Line]:
    """Measure pages of lists of runs with few finished runs and with many."""
    lines = []
    for backend in Backend:
        found = {
            count: measure_lists(session.servers, backend, count).p95_ms for count in (FEW_RUNS, MANY_RUNS)
        }
        for name, many in found[MANY_RUNS].items():
            few = found[FEW_RUNS][name]
            session.say(f"lists: {backend}, runs {name}: {few:.2f} ms, {many:.2f} ms")
            note = f"{MANY_RUNS:,} finished runs, {FEW_RUNS:,} take {few:.2f}"
            lines.append(Line(f"page of runs {name}, p95", backend, "ms", [many], [few], note))
    return lines


MEASURES: Final[Mapping[Part, Callable[[Session], list[Line]]]] = MappingProxyType(
    {
        Part.THROUGHPUT: compare_throughput,
        Part.LATENCY: compare_latency,
        Part.SCALE: compare_scale,
        Part.MEMORY: watch_memory,
        Part.LISTS: compare_lists,
        Part.SWEEP: lambda session: compare_sweep(session.servers, session.options.waiting, session.say),
    }
)


def profile(session: Session) -> None:
    """Write profiles of matcher and worker on both databases, and say where."""
    for backend in Backend:
        for path in record_profiles(session.servers, backend, session.options.events, RESULTS):
            session.say(str(path))


def measure(session: Session) -> Report:
    """Measure what was asked for, part by part."""
    report = Report({**machine(), **session.servers.versions()})
    for part in session.options.parts:
        report.lines += MEASURES[part](session)
    return report


def main(arguments: Sequence[str]) -> None:
    """Do what the command line asks for."""
    options = read_options(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with open_servers() as servers:
        session = Session(options, servers, Console(stderr=True, highlight=False, soft_wrap=True).print)
        if options.is_profile:
            profile(session)
            return
        report = measure(session)
    report.show(Console(width=None if sys.stdout.isatty() else 160))
    report.write(options.json)


if __name__ == "__main__":
    main(sys.argv[1:])
