"""What was measured, as one table and as JSON."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import median, ratios, shown


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of one program, a value a round; `against` holds another's of the same rounds."""

    measure: str
    program: str
    unit: str
    values: Sequence[float]
    against: Sequence[float] = ()
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Give the median of the rounds' ratios, or None if there is nothing to compare with."""
        return median(ratios(self.values, self.against)) if self.against else None


@dataclass(slots=True)
class Report:
    """The lines in the order in which they were measured, and what they were measured on."""

    about: Mapping[str, Any]
    lines: list[Line] = field(default_factory=list)

    def show(self, console: Console) -> None:
        """Print the table."""
        table = Table(title="medians; ratios are medians of the rounds' ratios", title_justify="left")
        for name in ("measure", "program", "median", "unit", "each round", "ratio", "note"):
            table.add_column(name, justify="right" if name in ("median", "ratio") else "left")
        for line in self.lines:
            ratio = "" if line.ratio is None else f"{shown(line.ratio)} x"
            rounds = " ".join(map(shown, line.values)) if len(line.values) > 1 else ""
            table.add_row(
                line.measure, line.program, shown(median(line.values)), line.unit, rounds, ratio, line.note
            )
        console.print(", ".join(f"{name} {value}" for name, value in self.about.items()), highlight=False)
        console.print(table)

    def as_json(self) -> str:
        """Write everything as JSON."""
        lines = [{**asdict(line), "median": median(line.values), "ratio": line.ratio} for line in self.lines]
        return json.dumps({"about": dict(self.about), "lines": lines}, indent=2) + "\n"

    def write(self, path: Path) -> None:
        """Write the JSON to a file, whose folder is made."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.as_json())


def machine() -> dict[str, Any]:
    """Say what the figures were taken on."""
    load = os.getloadavg()[0]
    return {
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": f"{load:.1f}",
    }
