"""The pages lead somewhere: every link to a page or a section, and every page that code names."""

import re
from pathlib import Path

import pytest

from tests.pages import DOCS, ROOT, Page, all_pages, page

LINK = re.compile(r"\]\(([^)\s]+)\)")
SECTION = re.compile(r"`(docs/[\w./-]+\.md)`, \"([^\"]+)\"")
CODE = (
    "shared",
    "matcher",
    "pipeline",
    "executors",
    "timers",
    "watchdog",
    "worker",
    "api",
    "knockon",
    "migrations",
    "tools",
)


@pytest.mark.parametrize("source", all_pages(), ids=lambda each: each.path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(source: Page) -> None:
    lost = [link for link in LINK.findall(source.text) if not leads_somewhere(source, link)]
    assert lost == []


def leads_somewhere(source: Page, link: str) -> bool:
    if "://" in link or link.startswith("mailto:"):
        return True
    name, _, anchor = link.partition("#")
    target = source.path if not name else (source.path.parent / name).resolve()
    return target.exists() and (not anchor or anchor in Page(target).anchors())


def test_the_index_lists_every_page() -> None:
    listed = {Path(link).as_posix() for link in LINK.findall(page("README.md").text)}
    pages = {each.path.relative_to(DOCS).as_posix() for each in all_pages() if DOCS in each.path.parents}
    assert pages - {"README.md"} <= listed


def test_the_sections_that_code_names_are_there() -> None:
    named = [
        found
        for room in CODE
        for file in (ROOT / room).rglob("*.py")
        for found in SECTION.findall(file.read_text(encoding="utf-8"))
    ]
    assert named
    assert [each for each in named if each[1] not in Page(ROOT / each[0]).headings()] == []
