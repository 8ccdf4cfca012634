"""What the command prints, and the pieces it is made of."""

import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from knockon.cli.app import MODULES, make_app
from knockon.cli.options import takes
from knockon.cli.output import console, print_error, print_table, show, show_instant, show_span
from knockon.cli.tail import parse_span

NOON = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Wishes:
    """Options of the command under test."""

    name: Annotated[str, typer.Argument()]
    loud: Annotated[bool, typer.Option("--loud")] = False
    times: Annotated[int, typer.Option(min=1)] = 1


def test_the_fields_of_a_dataclass_are_the_options_of_a_command() -> None:
    asked: list[Wishes] = []
    app = typer.Typer()

    @app.command()
    @takes(Wishes)
    def greet(wishes: Wishes) -> None:
        """Greet somebody."""
        asked.append(wishes)

    run = CliRunner()
    assert run.invoke(app, ["anna", "--loud", "--times", "3"]).exit_code == 0
    assert run.invoke(app, ["anna"]).exit_code == 0
    assert run.invoke(app, ["anna", "--times", "0"]).exit_code == 2
    assert run.invoke(app, []).exit_code == 2
    assert "Greet somebody" in run.invoke(app, ["--help"]).output
    assert asked == [Wishes("anna", True, 3), Wishes("anna")]


def test_what_is_no_terminal_gets_no_colors_and_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A", "B"), [("x" * 150, "SUCCEEDED"), (None, "[red]y[/red]")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["x" * 150, "SUCCEEDED"]
    assert lines[2].split() == ["[red]y[/red]"]


def test_a_row_stays_one_row_whatever_its_cells_hold(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A", "B"), [("one\ntwo\tthree", "x"), ("four", "y")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:]] == [["one\\ntwo\\tthree", "x"], ["four", "y"]]


def test_errors_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("no \x1b[31m colors")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "error: no \N{REPLACEMENT CHARACTER}[31m colors\n")


def test_a_terminal_gets_colors() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert console(Terminal()).is_terminal
    assert not console(io.StringIO()).is_terminal


def test_instants_and_spans_are_short() -> None:
    assert show_instant(NOON) == "2026-03-01 12:00:00.123Z"
    assert show_instant(None) == ""
    assert show_span(NOON, NOON + timedelta(seconds=2)) == "2,000 ms"
    assert show_span(NOON, None) == ""
    assert show_span(NOON, NOON - timedelta(days=10)) == ""


def test_lines_and_tabs_are_shown_as_they_are() -> None:
    assert show("a\tb\nc\r\u202e") == "a\tb\nc\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("10m", timedelta(minutes=10)),
        ("24h", timedelta(hours=24)),
        ("7d", timedelta(days=7)),
    ],
)
def test_spans_are_read(text: str, span: timedelta) -> None:
    assert parse_span(text) == span


@pytest.mark.parametrize("text", ["", "10", "m", "-1m", "1.5h", "10 m", "1m30s", "9999999m"])
def test_other_spans_are_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="no stretch of time"):
        parse_span(text)


@pytest.mark.parametrize("name", MODULES)
def test_each_command_stands_alone(name: str) -> None:
    alone = CliRunner().invoke(make_app([name]), [name, "--help"])
    assert alone.exit_code == 0
    assert f"knockon {name}" in alone.output


def test_the_top_lists_every_command() -> None:
    said = CliRunner().invoke(make_app(), ["--help"]).output
    assert [name for name in MODULES if name not in said] == []
