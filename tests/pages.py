"""The pages of the documentation, taken apart: headings, tables and fenced blocks, each by its section."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

_HEADING = re.compile(r"(#+) (.+)")
_CELL_BORDER = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, and the heading that it stands under."""

    language: str
    text: str
    section: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page."""

    path: Path

    @property
    def text(self) -> str:
        """The whole page."""
        return self.path.read_text(encoding="utf-8")

    def headings(self) -> list[str]:
        """Give the headings in order, outside of fenced blocks."""
        return [found[2] for line, fenced in self._lines() if not fenced and (found := _HEADING.match(line))]

    def anchors(self) -> set[str]:
        """Give what links into the page may name."""
        return {re.sub(r"[^\w\- ]", "", each).strip().lower().replace(" ", "-") for each in self.headings()}

    def blocks(self, language: str) -> list[Block]:
        """Give the fenced blocks of a language in order."""
        found: list[Block] = []
        section, kept = "", list[str]()
        for line, fenced in self._lines():
            if fenced:
                kept.append(line)
            elif kept:
                found.append(Block(kept[0].removeprefix("```").strip(), "\n".join(kept[1:]) + "\n", section))
                kept = []
            if not fenced and (heading := _HEADING.match(line)):
                section = heading[2]
        return [block for block in found if block.language == language]

    def table(self, section: str, at: int = 0) -> list[tuple[str, ...]]:
        """Give the rows of a section's table, without its head; `at` counts the tables of the section."""
        tables: list[list[tuple[str, ...]]] = []
        is_inside = was_row = False
        for line, fenced in self._lines():
            if not fenced and (heading := _HEADING.match(line)):
                is_inside = heading[2] == section
            is_row = is_inside and not fenced and line.startswith("|")
            if is_row and not was_row:
                tables.append([])
            if is_row:
                cells = _CELL_BORDER.split(line.strip().strip("|"))
                tables[-1].append(tuple(cell.strip().replace("\\|", "|") for cell in cells))
            was_row = is_row
        return tables[at][2:]

    def _lines(self) -> Iterator[tuple[str, bool]]:
        """Give each line and whether it is in a fenced block; the closing fence is not."""
        is_fenced = False
        for line in self.text.splitlines():
            if line.startswith("```"):
                is_fenced = not is_fenced
            yield line, is_fenced


def page(name: str) -> Page:
    """Give a page of `docs/`."""
    return Page(DOCS / name)


def all_pages() -> list[Page]:
    """Give every page of the repository that people read."""
    return [Page(path) for path in sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])]


def names(cell: str) -> list[str]:
    """Give what stands in a cell as code, in order."""
    return re.findall(r"`([^`]+)`", cell)
