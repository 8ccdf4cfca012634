"""`knockon runs replay` and `runs cancel`: of runs that are named, or of many by a filter."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Annotated, Final

import typer

from knockon.cli.connections import caller, opened_backends
from knockon.cli.fulfilling import Narrowed, fulfil, read_wish
from knockon.cli.options import DEFAULT_WORKSPACE, Output, Workspace, Yes, takes
from knockon.cli.output import Form, print_json, print_line, print_note
from knockon.cli.tail import parse_span
from shared.model.bulk import BulkKind
from shared.model.moves import RunStatus
from shared.services.runs import Cancelled, Insistence, ReplayFrom, Replays, cancel, replay

AT_ONCE: Final = 1000

RunIds = Annotated[list[str] | None, typer.Argument(metavar="RUN_ID", help="The runs' ids.")]
Automation = Annotated[str | None, typer.Option(metavar="KEY", help="Only this automation's.")]
FromStart = Annotated[
    bool, typer.Option("--from-start", help="Repeat all actions, those that succeeded too.")
]


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Which runs, and where they begin."""

    run_ids: RunIds = None
    status: Annotated[
        RunStatus | None, typer.Option(case_sensitive=False, help="Only these: dead_letter or failed.")
    ] = None
    automation: Automation = None
    since: Annotated[
        timedelta | None, typer.Option(parser=parse_span, metavar="2h", help="Only those that ended since.")
    ] = None
    code: Annotated[str | None, typer.Option(metavar="CODE", help="Only those with this error.")] = None
    fingerprint: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this group's, as `dead groups` shows it.")
    ] = None
    from_start: FromStart = False
    yes: Yes = False
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class CancelOptions:
    """Which run, and whether it may be running; or which of those that wait."""

    run_id: Annotated[str | None, typer.Argument(metavar="RUN_ID", help="The run's id.")] = None
    force: Annotated[
        bool, typer.Option("--force", help="Stop one that runs before its next action, if it has one.")
    ] = False
    automation: Automation = None
    since: Annotated[
        timedelta | None, typer.Option(parser=parse_span, metavar="2h", help="Only those made since.")
    ] = None
    everything: Annotated[bool, typer.Option("--all", help="All of the workspace that wait.")] = False
    yes: Yes = False
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(group: typer.Typer) -> None:
    """Add these commands to `runs`."""
    group.command("replay")(replay_some)
    group.command("cancel")(cancel_some)


@takes(ReplayOptions)
def replay_some(options: ReplayOptions) -> None:
    """Run failed and dead-lettered runs again, from the action that failed."""
    start = start_of(options.from_start)
    wanted = Narrowed(
        status=options.status,
        automation=options.automation,
        since=options.since,
        code=options.code,
        fingerprint=options.fingerprint,
    )
    if bool(options.run_ids) is not wanted.is_empty():
        raise typer.BadParameter("give either run ids or a filter, such as --status DEAD_LETTER")
    if options.run_ids:
        print_replays(replay_all(options.run_ids, options.workspace, start), start, options.output)
    else:
        fulfil(read_wish(BulkKind.REPLAY, wanted, start), options)


@takes(CancelOptions)
def cancel_some(options: CancelOptions) -> None:
    """Cancel a run that waits, or many of them."""
    wanted = Narrowed(automation=options.automation, since=options.since)
    is_filtered = options.everything or not wanted.is_empty()
    if (options.run_id is not None) is is_filtered or (options.force and is_filtered):
        raise typer.BadParameter("give either a run id, or --automation KEY, --since or --all")
    if options.run_id is not None:
        _cancel_one(options.run_id, options)
    else:
        fulfil(read_wish(BulkKind.CANCEL, wanted), options)


def start_of(from_start: object) -> ReplayFrom:
    """Say where a replay begins that was asked for with or without --from-start."""
    return ReplayFrom.START if from_start else ReplayFrom.FAILED_ACTION


def replay_all(run_ids: Sequence[str], workspace: str, start: ReplayFrom) -> Replays:
    """Replay runs for the user of this shell, a thousand in a transaction."""
    with opened_backends() as backends:
        parts = [
            replay(backends, caller(workspace), run_ids[first : first + AT_ONCE], start)
            for first in range(0, len(run_ids), AT_ONCE)
        ]
    return Replays(
        replayed=tuple(run_id for part in parts for run_id in part.replayed),
        going_on=tuple(run_id for part in parts for run_id in part.going_on),
    )


def print_replays(done: Replays, start: ReplayFrom, output: Form) -> None:
    """Print what became of runs that were to be replayed."""
    if output is Form.JSON:
        print_json({**asdict(done), "from": start})
        return
    how = "from the action that failed"
    if start is ReplayFrom.START:
        how = "from the start: actions that succeeded are repeated too"
    if done.replayed:
        print_line(f"{len(done.replayed)} replayed {how}")
    for run_id in done.going_on:
        print_note(f"{run_id} is going on already")


def _cancel_one(run_id: str, options: CancelOptions) -> None:
    insistence = Insistence.FORCE if options.force else Insistence.GENTLE
    with opened_backends() as backends:
        how = cancel(backends, caller(options.workspace), run_id, insistence)
    if options.output is Form.JSON:
        print_json({"run_id": run_id, "cancelled": how})
        return
    stopping = "it stops before its next action, as FAILED CANCELLED, unless it is in its last action"
    print_line("cancelled" if how is Cancelled.AT_ONCE else stopping)
