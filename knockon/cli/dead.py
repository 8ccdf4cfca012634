"""`knockon dead`: the runs whose every attempt failed, and another chance for them."""

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from knockon.cli.connections import opened_database
from knockon.cli.options import DEFAULT_WORKSPACE, Limit, Output, Workspace, takes
from knockon.cli.output import Form
from knockon.cli.runs import FromStart, print_replays, print_runs, replay_all
from shared.db.reads import RunSummary, find_run_rows
from shared.db.run_lists import RunQuery, list_runs
from shared.errors import Conflict
from shared.model.moves import RunStatus
from shared.services.references import check_workspace, find_ever_automation
from shared.services.runs import ReplayFrom

group = typer.Typer(help="Runs whose every attempt failed.", no_args_is_help=True)

PAGE: Final = 1000

Automation = Annotated[str | None, typer.Option(metavar="KEY", help="Only this automation's.")]


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which dead letters, and how to print."""

    automation: Automation = None
    limit: Limit = 20
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class ReplayDeadOptions:
    """Which dead letters, and where they begin."""

    run_ids: Annotated[list[str] | None, typer.Argument(metavar="RUN_ID", help="The runs' ids.")] = None
    automation: Automation = None
    everything: Annotated[bool, typer.Option("--all", help="All of the workspace.")] = False
    from_start: FromStart = False
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="dead")


@group.command("list")
@takes(ListOptions)
def list_dead(options: ListOptions) -> None:
    """List a workspace's dead letters, newest first."""
    print_runs(_find(options.workspace, options.automation, options.limit), options.output)


@group.command("replay")
@takes(ReplayDeadOptions)
def replay_dead(options: ReplayDeadOptions) -> None:
    """Run dead letters again, from the action that failed."""
    given = [bool(options.run_ids), options.automation is not None, options.everything]
    if sum(given) > 1:
        raise typer.BadParameter("give only one of run ids, --automation KEY and --all")
    if not any(given):
        raise typer.BadParameter("give run ids, --automation KEY or --all")
    start = ReplayFrom.START if options.from_start else ReplayFrom.FAILED_ACTION
    if options.run_ids:
        _check_dead(options.workspace, options.run_ids)
    run_ids = options.run_ids or _find_replayable(options.workspace, options.automation)
    print_replays(replay_all(run_ids, options.workspace, start), start, options.output)


def _check_dead(workspace: str, run_ids: list[str]) -> None:
    """Raise Conflict for a run that failed without being a dead letter."""
    with opened_database() as database, database.read() as conn:
        found = find_run_rows(conn, workspace, run_ids)
    failed = [run_id for run_id in run_ids if run_id in found and found[run_id].status is RunStatus.FAILED]
    if failed:
        fix = f"knockon runs replay {' '.join(failed)}"
        raise Conflict(f"run {failed[0]} is FAILED and no dead letter; replay it with: {fix}")


def _find_replayable(workspace: str, reference: str | None) -> list[str]:
    """Name all dead letters but those of deleted automations, which have nothing left to do."""
    found: list[str] = []
    before = None
    while page := _find(workspace, reference, PAGE, before):
        found += [row.id for row in page if row.automation_deleted_at is None]
        before = page[-1].id
    return found


def _find(workspace: str, reference: str | None, most: int, before: str | None = None) -> list[RunSummary]:
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, workspace)
        wanted = find_ever_automation(conn, workspace, reference).id if reference else None
        return list_runs(conn, RunQuery(workspace, most, RunStatus.DEAD_LETTER, wanted, before))
