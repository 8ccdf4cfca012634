"""How errors end the command: clear lines on stderr and exit code 1; only a bug shows a traceback."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import typer
from pydantic import ValidationError
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError
from typer.core import TyperGroup

from knockon.cli.output import print_error, show
from knockon.client import PublishError
from shared.db.engine import is_outage, sqlstate
from shared.errors import DefinitionError, KnockonError
from shared.masking import mask_urls
from shared.model.plain_words import words_for
from shared.process import FAILED, PIPE_CLOSED

UNDEFINED_TABLE: Final = "42P01"


class Commands(TyperGroup):
    """The top of all commands, where every expected error is told and ends as exit code 1."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # typer's own context
        """Run the command that was asked for."""
        with ending_with_its_reader():
            return self._invoke(ctx)

    def make_context(self, *args: Any, **kwargs: Any) -> typer.Context:
        """Read the arguments, which may print the help."""
        with ending_with_its_reader():
            return super().make_context(*args, **kwargs)  # type: ignore[return-value]

    def _invoke(self, ctx: typer.Context) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            raise _in_plain_words(error) from None
        except DefinitionError as error:
            for fault in error.faults:
                print_error(f"{fault.path}: {fault.message}")
        except (KnockonError, PublishError) as error:
            print_error(_with_fix(error))
        except DBAPIError as error:
            print_error(_about_sql(error))
        except RedisError as error:
            print_error(f"Redis: {mask_urls(str(error))}")
        except BrokenPipeError:
            raise
        except OSError as error:
            print_error(_about_system(error))
        raise typer.Exit(FAILED)


def _with_fix(error: Exception) -> str:
    fix = error.fix if isinstance(error, KnockonError) else ""
    return f"{error}; {fix}" if fix else str(error)


@contextmanager
def ending_with_its_reader() -> Iterator[None]:
    """End quietly when whoever read the output has closed the pipe, as programs do that the system ends."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # what is left is flushed there when the process ends
        raise typer.Exit(PIPE_CLOSED) from None


def _in_plain_words(error: typer.BadParameter) -> typer.BadParameter:
    """Say in our words what an option's value lacks, where the library says it in its own."""
    if isinstance(error.__cause__, ValidationError):
        error.message = show(words_for(error.__cause__.errors(include_url=False)[0]))
    return error


def _about_system(error: OSError) -> str:
    """Say what the system refused, without its number."""
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _about_sql(error: DBAPIError) -> str:
    """Say what a person can do about a database error. Raises it again when it is none of theirs."""
    if sqlstate(error) == UNDEFINED_TABLE or "no such table" in str(error.orig):
        return "the database has not been migrated; do it with: knockon migrate"
    if not is_outage(error):
        raise error
    lines = str(error.orig).strip().splitlines()
    return f"the database cannot be used: {mask_urls(lines[0] if lines else type(error.orig).__name__)}"
