"""Where the time of matcher and worker goes, as py-spy sees it while they work a full stream off.

Only threads that hold the interpreter's lock are sampled. So it is Python's own cost that shows, however busy
the machine is; what SQL and Redis cost shows in the processor time of the throughput.
"""

import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.contenders import knockon, running
from benchmarks.progress import Rows, publish
from benchmarks.scenario import TWO_HUNDRED, events
from benchmarks.sites import Backend, Servers

OPTIONS: Final = ("--rate", "250", "--format", "raw", "--gil", "--function")
ROOMS: Final = ("knockon/", "matcher/", "worker/", "pipeline/", "watchdog/", "executors/", "shared/")
STEM: Final = 0.97
TOP: Final = 40
END_S: Final = 60


@dataclass(frozen=True, slots=True)
class Profile:
    """Samples by function: in it and what it calls, and in it alone."""

    samples: int
    inclusive: Counter[str]
    own: Counter[str]


def find_py_spy() -> str | None:
    """Find the profiler beside this Python or on PATH; None where it is not installed."""
    return shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")


def fold(lines: Iterable[str]) -> Profile:
    """Count the samples of collapsed stacks: `frame;frame;frame count`, the innermost frame last."""
    inclusive: Counter[str] = Counter()
    own: Counter[str] = Counter()
    total = 0
    for line in lines:
        stack, _, times = line.strip().rpartition(" ")
        if not stack:
            continue
        frames = stack.split(";")
        total += int(times)
        own[frames[-1]] += int(times)
        for frame in dict.fromkeys(frames):
            inclusive[frame] += int(times)
    return Profile(total, inclusive, own)


def tell(profile: Profile) -> str:
    """Write the top functions as text, in percent of all samples.

    With what they call are told those of the rooms, but for the stem that every sample has in common.
    """
    lines = [f"{profile.samples} samples"]
    ours = Counter(
        {
            frame: count
            for frame, count in profile.inclusive.items()
            if frame.partition("(")[2].startswith(ROOMS) and count < profile.samples * STEM
        }
    )
    for title, counts in (("with what they call", ours), ("alone", profile.own)):
        lines.append(f"\n  % {title}")
        shares = ((frame, count * 100 / max(1, profile.samples)) for frame, count in counts.most_common(TOP))
        lines += [f"{share:5.1f} {frame}" for frame, share in shares]
    return "\n".join(lines)


def record_profiles(servers: Servers, backend: Backend, count: int, folder: Path) -> list[Path]:
    """Work `count` events off under the profiler; give the files, two a process: the stacks and the tops.

    Raises AssertionError where py-spy is not installed.
    """
    py_spy = find_py_spy()
    assert py_spy is not None, "py-spy is missing: install benchmarks/requirements.txt"
    contender = knockon(backend)
    site = servers.fresh(backend)
    contender.prepare(site)
    rows = Rows(site)
    folder.mkdir(parents=True, exist_ok=True)
    stacks = {role: folder / f"{backend.lower()}-{role}.stacks" for role in contender.roles}
    with running(contender, site) as started, ExitStack() as watching:
        publish(site, list(events(TWO_HUNDRED, 1)))
        rows.wait_done(1, started)
        for role, process in started.processes.items():
            options = ["--pid", str(process.pid), *OPTIONS]
            log = watching.enter_context((site.folder / f"{role}-spy.log").open("wb"))
            command = [py_spy, "record", *options, "--output", str(stacks[role])]
            spy = subprocess.Popen(command, stdout=log, stderr=log)
            watching.callback(_end, spy)
        publish(site, list(events(TWO_HUNDRED, count)))
        rows.wait_done(count + 1, started)
    rows.close()
    return [path for found in stacks.values() for path in (found, _write_top(found))]


def _write_top(stacks: Path) -> Path:
    top = stacks.with_suffix(".txt")
    top.write_text(tell(fold(stacks.read_text().splitlines())) + "\n")
    return top


def _end(spy: subprocess.Popen[bytes]) -> None:
    spy.send_signal(signal.SIGINT)
    spy.wait(END_S)
