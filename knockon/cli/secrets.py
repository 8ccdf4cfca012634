"""`knockon secrets`: what actions need to get in elsewhere. A value goes in and is never shown again."""

import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Final

import typer

from knockon.cli.connections import caller, opened_database, read_settings
from knockon.cli.options import DEFAULT_WORKSPACE, ListOptions, Workspace, takes
from knockon.cli.output import Form, print_json, print_line, print_note, print_table, show_instant
from shared.db.secrets import list_secrets
from shared.errors import ConfigError
from shared.hiding import SHORTEST
from shared.services.sealed import seal_to_write
from shared.services.secrets import VALUE_CHARS_MAX, SecretStore, drop_secret, set_secret
from shared.time.clock import SystemClock

group = typer.Typer(help="Secrets that actions use.", no_args_is_help=True)

READ_MOST: Final = 4 * VALUE_CHARS_MAX

Name = Annotated[str, typer.Argument(metavar="NAME", help="The secret's name, as in {{ secrets.NAME }}.")]


@dataclass(frozen=True, slots=True)
class OneOptions:
    """Which secret."""

    name: Name
    workspace: Workspace = DEFAULT_WORKSPACE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="secrets")


@group.command("list")
@takes(ListOptions)
def list_all(options: ListOptions) -> None:
    """List the names of a workspace's secrets; nobody can read a value back."""
    with opened_database() as database, database.read() as conn:
        rows = list_secrets(conn, options.workspace)
    if options.output is Form.JSON:
        print_json([asdict(row) for row in rows])
        return
    print_table(
        ("NAME", "CREATED", "UPDATED"),
        ((row.name, show_instant(row.created_at), show_instant(row.updated_at)) for row in rows),
    )


@group.command("set")
@takes(OneOptions)
def set_one(options: OneOptions) -> None:
    """Set a secret to what stands on stdin, or is typed unseen; an earlier value is gone."""
    settings = read_settings()
    with opened_database() as database:
        store = SecretStore(database, SystemClock(), seal_to_write(database, settings))
        value = _ask_value(options.name)
        is_new = set_secret(store, caller(options.workspace), options.name, value).is_new
    print_line("created" if is_new else "updated")
    if len(value) < SHORTEST:
        print_note(f"a value of fewer than {SHORTEST} characters is not masked in what actions give back")


@group.command("delete")
@takes(OneOptions)
def delete_one(options: OneOptions) -> None:
    """Delete a secret; actions that ask for it fail from now on."""
    with opened_database() as database:
        drop_secret(database, SystemClock(), caller(options.workspace), options.name)
    print_line("deleted")


def _ask_value(name: str) -> str:
    """Read the value, without the line end that ends it."""
    if sys.stdin.isatty():
        typed: str = typer.prompt(f"Value of {name}", hide_input=True, err=True)
        return typed
    try:
        piped = sys.stdin.read(READ_MOST)
    except UnicodeDecodeError as error:
        raise ConfigError("a secret's value is UTF-8 text; encode other bytes in base64") from error
    return piped.removesuffix("\n").removesuffix("\r")
