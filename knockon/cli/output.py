"""What the command prints: tables for people, JSON for programs, errors to stderr; colors on a terminal."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TextIO

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typing_extensions import override

WIDTH_OF_A_FILE: Final = 400
SHOWN_CHARS: Final = 120
STYLES: Final[Mapping[str, str]] = {
    "SUCCEEDED": "green",
    "ACTIVE": "green",
    "ok": "green",
    "created": "green",
    "RUNNING": "cyan",
    "PENDING": "yellow",
    "PAUSED": "yellow",
    "warn": "yellow",
    "warning": "yellow",
    "updated": "yellow",
    "FAILED": "red",
    "DEAD_LETTER": "red",
    "fail": "red",
    "error": "red",
    "deleted": "red",
}


class Form(StrEnum):
    """How a command answers."""

    TABLE = "table"
    JSON = "json"


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their headings; a word that stands for a state takes its color."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    console(sys.stdout).print(table)


def print_json(document: object) -> None:
    """Print one JSON document, over several lines."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z
    sys.stdout.write(orjson.dumps(document, option=options, default=str).decode() + "\n")


def print_json_line(document: object) -> None:
    """Print one JSON document on one line, at once."""
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_UTC_Z, default=str).decode() + "\n")
    sys.stdout.flush()


def print_line(text: str, style: str = "") -> None:
    """Print one line of text as it is."""
    console(sys.stdout).print(Text(show(text), style), soft_wrap=True)


def print_error(text: str) -> None:
    """Print to stderr what went wrong."""
    console(sys.stderr).print(
        Text("error: ", "bold red").append(show(text), "not bold default"), soft_wrap=True
    )


def print_note(text: str) -> None:
    """Print to stderr what a person should know, but no program."""
    console(sys.stderr).print(Text(show(text)), soft_wrap=True)


class Paper(Console):
    """A console that leaves it to its caller what happens when nobody reads it any more."""

    @override
    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - it is called where the error is handled


def console(stream: TextIO) -> Console:
    """Give a console on `stream` that takes text as it is; what is no terminal is not cut at 80 columns."""
    width = None if stream.isatty() else WIDTH_OF_A_FILE
    return Paper(file=stream, width=width, markup=False, highlight=False, emoji=False)


def show(text: str) -> str:
    """Replace what could steer a terminal; lines and tabs stay."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def show_instant(at: datetime | None) -> str:
    """Write an instant for a table, in UTC, to the millisecond."""
    if at is None:
        return ""
    return at.astimezone(UTC).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + "Z"


def show_span(begin: datetime | None, end: datetime | None) -> str:
    """Write how long something took; nothing while one end is open or before the other."""
    if begin is None or end is None or end < begin:
        return ""
    return f"{(end - begin) / timedelta(milliseconds=1):,.0f} ms"


def show_json(document: Any) -> str:
    """Write a JSON value on one line."""
    return orjson.dumps(document, default=str).decode()


def show_start(text: str) -> str:
    """Give a text for a table: of a long one the beginning."""
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


def _cell(value: object) -> Text:
    """Write a value on one line, so that one row stays one row whatever an id holds."""
    text = "" if value is None else show(str(value)).replace("\n", "\\n").replace("\t", "\\t")
    return Text(text, STYLES.get(text, ""))
