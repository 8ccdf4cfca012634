"""Options of commands as frozen dataclasses: one field an option, so that a command takes one argument."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, Final, TypeVar, get_type_hints

import typer

from knockon.cli.output import Form
from shared.errors import ConfigError

Options = TypeVar("Options")

DEFAULT_WORKSPACE: Final = "default"
WORKSPACE_VARIABLE: Final = "KNOCKON_WORKSPACE"

Workspace = Annotated[
    str, typer.Option("--workspace", "-w", envvar=WORKSPACE_VARIABLE, help="The workspace that is meant.")
]
Output = Annotated[Form, typer.Option("--output", "-o", help="A table for people, JSON for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="At most so many.")]


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which workspace, and how to print."""

    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@contextmanager
def at_option(name: str) -> Iterator[None]:
    """Take a refusal of what an option says for a wrong use of the command, and name the option."""
    try:
        yield
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint=name) from error


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Make a command of a function of `options`: each field is one of its options or arguments."""
    hints = get_type_hints(options, include_extras=True)
    parameters = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name])
        for field in dataclasses.fields(options)  # type: ignore[arg-type]  # every caller gives a dataclass
    ]

    def decorate(command: Callable[[Options], None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            command(options(**given))

        run.__name__ = command.__name__
        run.__doc__ = command.__doc__
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
        return run

    return decorate


def _default(field: dataclasses.Field[Any]) -> Any:
    return Parameter.empty if field.default is dataclasses.MISSING else field.default
