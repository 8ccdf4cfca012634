"""How errors end the command: clear lines on stderr and exit code 1; only a bug shows a traceback."""

from typing import Any, Final

import typer
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError
from typer.core import TyperGroup

from knockon.cli.output import print_error
from knockon.client import PublishError
from shared.db.engine import is_outage, sqlstate
from shared.errors import DefinitionError, KnockonError
from shared.masking import mask_urls
from shared.process import FAILED

UNDEFINED_TABLE: Final = "42P01"


class Commands(TyperGroup):
    """The top of all commands, where every expected error is told and ends as exit code 1."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # typer's own context
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except DefinitionError as error:
            for fault in error.faults:
                print_error(f"{fault.path}: {fault.message}")
        except (KnockonError, PublishError) as error:
            print_error(str(error))
        except DBAPIError as error:
            print_error(_about_sql(error))
        except RedisError as error:
            print_error(f"Redis: {mask_urls(str(error))}")
        except BrokenPipeError:
            raise
        except OSError as error:
            print_error(str(error))
        raise typer.Exit(FAILED)


def _about_sql(error: DBAPIError) -> str:
    """Say what a person can do about a database error. Raises it again when it is none of theirs."""
    if sqlstate(error) == UNDEFINED_TABLE or "no such table" in str(error.orig):
        return "the database has not been migrated; do it with: knockon migrate"
    if not is_outage(error):
        raise error
    lines = str(error.orig).strip().splitlines()
    return f"the database cannot be used: {mask_urls(lines[0] if lines else type(error.orig).__name__)}"
