"""`knockon flags`: what a workspace has turned on."""

import os
from dataclasses import asdict, dataclass
from typing import Annotated, Final

import typer

from knockon.cli.connections import caller, opened_database
from knockon.cli.options import DEFAULT_WORKSPACE, WORKSPACE_VARIABLE, ListOptions, takes
from knockon.cli.output import Form, print_json, print_line, print_note, print_table, show_instant
from shared.model.flag_states import KNOWN_FLAGS, FlagState, has_two_halves
from shared.services.flags import (
    ListedFlag,
    installation_flags,
    list_known_flags,
    set_feature_flag,
    set_flag,
)
from shared.services.references import check_workspace
from shared.time.clock import SystemClock

NOBODY_READS: Final = "nothing reads"

group = typer.Typer(help="What a workspace has turned on.", no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Which flag, and what it is to say."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="The flag's name.")]
    state: Annotated[FlagState, typer.Argument(metavar="STATE", help="on or off.")]
    workspace: Annotated[
        str | None,
        typer.Option(
            "--workspace", "-w", help="The workspace that is meant; a flag with two halves needs none."
        ),
    ] = None


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="flags")


@group.command("list")
@takes(ListOptions)
def list_all(options: ListOptions) -> None:
    """List the flags that a workspace has set, and those that something reads."""
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, options.workspace)
        flags = list_known_flags(conn, options.workspace)
    if options.output is Form.JSON:
        print_json([asdict(flag) for flag in flags])
        return
    print_table(("NAME", "STATE", "INSTALLATION", "EFFECTIVE", "TURNS ON", "UPDATED"), map(_row, flags))


@group.command("set")
@takes(SetOptions)
def set_one(options: SetOptions) -> None:
    """Turn a flag on or off: of a workspace, or without one the half of the whole installation."""
    wanted = (options.name, options.state)
    is_for_all = options.workspace is None and has_two_halves(options.name)
    asked_for = options.workspace
    if asked_for is None:
        asked_for = os.environ.get(WORKSPACE_VARIABLE) or DEFAULT_WORKSPACE
    with opened_database() as database:
        setting = set_feature_flag if is_for_all else set_flag
        before = setting(database, SystemClock(), caller(asked_for), wanted).before
        with database.read() as conn:
            everywhere = installation_flags(conn).get(options.name)
    was = "never set" if before is None else before
    where = " for the whole installation" if is_for_all else ""
    changed = " already" if before is options.state else f" (was {was})"
    print_line(f"{options.name} is {options.state}{where}{changed}")
    _print_what_it_needs(options.name, everywhere)


def _print_what_it_needs(name: str, everywhere: FlagState | None) -> None:
    if name not in KNOWN_FLAGS:
        print_note(f"{NOBODY_READS} a flag of this name, so it changes nothing")
    elif has_two_halves(name) and everywhere is not FlagState.ON:
        print_note(f"it is off for the whole installation; turn that on with: knockon flags set {name} on")


def _row(flag: ListedFlag) -> tuple[str, ...]:
    has_half = has_two_halves(flag.name)
    return (
        flag.name,
        flag.state or "default",
        (flag.installation or "default") if has_half else "-",
        flag.effective or "default",
        flag.turns_on or NOBODY_READS,
        show_instant(flag.updated_at),
    )
