"""The page of the command has every command, with every argument and option."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from knockon.cli.app import make_app
from shared.db.log_reads import LEVELS
from tests.pages import names, page

PAGE = page("cli.md")
PLAIN = {"-h", "--help"}


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    if not below:
        yield name, command
    for each, inner in below.items():
        yield from commands(inner, f"{name} {each}")


APP = make_app()
COMMANDS = dict(commands(typer.main.get_command(APP), "knockon"))


def documented(name: str) -> dict[str, str]:
    """Give what stands in a command's table: each name of an option or argument, and its default."""
    rows = PAGE.table(name) if wanted(COMMANDS[name]) else []
    return {each: row[1] for row in rows for each in names(row[0])}


def wanted(command: Any) -> set[str]:
    found: set[str] = set()
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            found.add(argument_name(parameter))
        elif not parameter.hidden:
            found |= {*parameter.opts, *parameter.secondary_opts} - PLAIN
    return found


def argument_name(parameter: Any) -> str:
    plain: str = parameter.metavar or parameter.name
    return plain.upper() + ("..." if parameter.nargs != 1 else "")


def test_every_command_has_a_section_and_no_other() -> None:
    sections = {heading for heading in PAGE.headings() if heading.startswith("knockon ")}
    assert sections == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_and_option_is_told(name: str) -> None:
    assert documented(name).keys() == wanted(COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_usage_brackets_what_may_be_left_out_once(name: str) -> None:
    usage = CliRunner().invoke(APP, [*name.split()[1:], "--help"]).output.split("\n\n")[0]
    assert "[[" not in usage
    assert "......" not in usage.replace("]...", "...")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_usage_names_arguments_as_the_page_does(name: str) -> None:
    usage = CliRunner().invoke(APP, [*name.split()[1:], "--help"]).output.split("\n\n")[0]
    shown = usage.partition("[OPTIONS]")[2]
    assert shown == shown.upper()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_must_be_given_is_told(name: str) -> None:
    told = documented(name)
    for parameter in COMMANDS[name].params:
        given = {argument_name(parameter), *parameter.opts} & told.keys()
        assert all((told[each] == "required") is parameter.required for each in given)


def test_the_levels_of_the_log_are_told() -> None:
    (told,) = [row[2] for row in PAGE.table("knockon tail") if names(row[0]) == ["--level"]]
    assert tuple(names(told)) == LEVELS
