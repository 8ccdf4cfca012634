"""`knockon flags`: what a workspace has turned on."""

from dataclasses import asdict, dataclass
from typing import Annotated, Final

import typer

from knockon.cli.connections import caller, opened_database
from knockon.cli.options import DEFAULT_WORKSPACE, ListOptions, Workspace, takes
from knockon.cli.output import Form, print_json, print_line, print_note, print_table, show_instant
from shared.db.flags import list_flags
from shared.model.flag_states import KNOWN_FLAGS, FlagState
from shared.services.flags import listed_flags, set_flag
from shared.time.clock import SystemClock

NOBODY_READS: Final = "nothing reads"

group = typer.Typer(help="What a workspace has turned on.", no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Which flag, and what it is to say."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="The flag's name.")]
    state: Annotated[FlagState, typer.Argument(metavar="STATE", help="on or off.")]
    workspace: Workspace = DEFAULT_WORKSPACE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="flags")


@group.command("list")
@takes(ListOptions)
def list_all(options: ListOptions) -> None:
    """List the flags that a workspace has set, and those that something reads."""
    with opened_database() as database, database.read() as conn:
        flags = listed_flags(list_flags(conn, options.workspace))
    if options.output is Form.JSON:
        print_json([asdict(flag) for flag in flags])
        return
    rows = (
        (flag.name, flag.state or "default", flag.turns_on or NOBODY_READS, show_instant(flag.updated_at))
        for flag in flags
    )
    print_table(("NAME", "STATE", "TURNS ON", "UPDATED"), rows)


@group.command("set")
@takes(SetOptions)
def set_one(options: SetOptions) -> None:
    """Turn a flag on or off."""
    with opened_database() as database:
        wanted = (options.name, options.state)
        before = set_flag(database, SystemClock(), caller(options.workspace), wanted).before
    was = "never set" if before is None else before
    print_line(
        f"{options.name} is {options.state}" + (" already" if before is options.state else f" (was {was})")
    )
    if options.name not in KNOWN_FLAGS:
        print_note(f"{NOBODY_READS} a flag of this name, so it changes nothing")
