"""`knockon events`: entries of the stream that could not be taken, and a second chance for them."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Final

import typer

from knockon.cli.connections import caller, opened_backends
from knockon.cli.options import Limit, Output, takes
from knockon.cli.output import Form, print_error, print_json, print_line, print_table, show_json, show_start
from shared.dead_stream import MAXLEN, list_dead
from shared.masking import mask_tree
from shared.process import FAILED
from shared.services.dead_events import put_back_events

group = typer.Typer(help="Events that could not be taken.", no_args_is_help=True)

_ID: Final = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class DeadOptions:
    """How many, and how to print."""

    limit: Limit = 20
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class RequeueOptions:
    """Which dead entries go back."""

    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids that `events dead` shows.")] = (
        None
    )
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="events")


@group.command("dead")
@takes(DeadOptions)
def dead(options: DeadOptions) -> None:
    """List the events that could not be taken, newest first, with the reason."""
    with opened_backends() as backends:
        found = list_dead(backends.redis, backends.keys, options.limit)
    entries = [replace(entry, fields=mask_tree(entry.fields)) for entry in found]
    if options.output is Form.JSON:
        print_json([asdict(entry) for entry in entries])
        return
    print_table(
        ("ID", "REASON", "EVENT"),
        ((entry.id, entry.reason, show_start(show_json(entry.fields))) for entry in entries),
    )


@group.command("requeue")
@takes(RequeueOptions)
def put_back(options: RequeueOptions) -> None:
    """Put dead events back on the stream; what is malformed comes back to the dead stream."""
    if options.ids and options.everything:
        raise typer.BadParameter("give only one of ids and --all")
    if not options.ids and not options.everything:
        raise typer.BadParameter("give ids, or --all")
    for given in options.ids or []:
        if not _ID.fullmatch(given):
            raise typer.BadParameter(f"{given!r} is no id of an entry; they look like 1700000000000-0")
    outcomes: dict[str, str | None] = {}
    with opened_backends() as backends:
        ids = options.ids or [entry.id for entry in list_dead(backends.redis, backends.keys, MAXLEN)]
        wanted = list(dict.fromkeys(ids))
        try:
            outcomes.update(put_back_events(backends, caller("").actor, wanted))
        finally:
            _print_outcomes(outcomes, len(wanted), options.output)
    if any(outcomes.values()):
        raise typer.Exit(FAILED)


def _print_outcomes(outcomes: Mapping[str, str | None], asked: int, output: Form) -> None:
    left = {dead_id: reason for dead_id, reason in outcomes.items() if reason is not None}
    moved = len(outcomes) - len(left)
    for dead_id, reason in left.items():
        print_error(f"{dead_id} {reason}")
    if output is Form.JSON:
        print_json({"requeued": moved, "left": left})
        return
    are = "is" if moved == 1 else "are"
    print_line(f"{moved} of {asked} {are} on the stream again")
