"""The diagram of a run's states for the documentation, drawn from the table of moves.

`python tools/moves_diagram.py` prints it; `python tools/moves_diagram.py docs/architecture.md` puts it into
that page, between the two marks.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from shared.model.moves import MOVES, RunStatus

BEGIN: Final = "<!-- moves: drawn by tools/moves_diagram.py -->"
END: Final = "<!-- end of moves -->"

LABELS: Final[Mapping[tuple[RunStatus, RunStatus], str]] = {
    (RunStatus.PENDING, RunStatus.RUNNING): "claimed",
    (RunStatus.PENDING, RunStatus.CANCELLED): "a person cancels it",
    (RunStatus.RUNNING, RunStatus.SUCCEEDED): "done, or skipped",
    (RunStatus.RUNNING, RunStatus.FAILED): "fatal error",
    (RunStatus.RUNNING, RunStatus.PENDING): "crashed or handed back",
    (RunStatus.RUNNING, RunStatus.DEAD_LETTER): "crashed too often",
    (RunStatus.FAILED, RunStatus.PENDING): "retried, or replayed by a person",
    (RunStatus.FAILED, RunStatus.DEAD_LETTER): "retries used up",
    (RunStatus.DEAD_LETTER, RunStatus.PENDING): "replayed by a person",
}


def draw() -> str:
    """Draw every move of the table; a state without moves is an end. KeyError for a move without a label."""
    lines = ["stateDiagram-v2", "    [*] --> PENDING"]
    for origin, targets in MOVES.items():
        lines += [f"    {origin} --> {to}: {LABELS[origin, to]}" for to in RunStatus if to in targets]
        if not targets:
            lines.append(f"    {origin} --> [*]")
    return "\n".join(["```mermaid", *lines, "```"])


def put_into(page: str) -> str:
    """Give the page with the diagram between its marks. Raises ValueError where they are not there."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n{draw()}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Print the diagram, or write it into the page that is named; the answer is the exit code."""
    if not arguments:
        print(draw())
        return 0
    path = Path(arguments[0])
    path.write_text(put_into(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
