"""`knockon dead`: the runs whose every attempt failed, and another chance for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from knockon.cli.connections import opened_database
from knockon.cli.fulfilling import Narrowed, fulfil, read_wish
from knockon.cli.moves import Automation, FromStart, print_replays, replay_all, start_of
from knockon.cli.options import DEFAULT_WORKSPACE, Limit, Output, Workspace, Yes, takes
from knockon.cli.output import Form, print_json, print_table, show_instant
from knockon.cli.runs import print_runs
from shared.db.dead_groups import DeadGroup, list_dead_groups
from shared.db.dead_letters import automation_names
from shared.db.reads import find_run_rows
from shared.db.run_lists import RunQuery, list_runs
from shared.errors import Conflict
from shared.model.bulk import BulkKind
from shared.model.moves import RunStatus
from shared.services.references import check_workspace, ever_automation_id

group = typer.Typer(help="Runs whose every attempt failed.", no_args_is_help=True)

NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which dead letters, and how to print."""

    automation: Automation = None
    limit: Limit = 20
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class GroupsOptions:
    """Which workspace, and how to print."""

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
    yes: Yes = False
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="dead")


@group.command("list")
@takes(ListOptions)
def list_dead(options: ListOptions) -> None:
    """List a workspace's dead letters, newest first."""
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, options.workspace)
        wanted = ever_automation_id(conn, options.workspace, options.automation or None)
        query = RunQuery(options.workspace, options.limit, RunStatus.DEAD_LETTER, wanted)
        rows = list_runs(conn, query)
    print_runs(rows, options.output)


@group.command("groups")
@takes(GroupsOptions)
def list_groups(options: GroupsOptions) -> None:
    """List a workspace's dead letters by what is wrong with them."""
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, options.workspace)
        rows = list_dead_groups(conn, options.workspace, most=options.limit)
        names = automation_names(conn, {each for row in rows for each in row.automation_ids})
    if options.output is Form.JSON:
        print_json([_document(row) for row in rows])
        return
    print_table(
        ("ID", "COUNT", "CODE", "WHERE", "AUTOMATIONS", "FIRST", "LAST", "NEWEST RUN", "MESSAGE"),
        (
            (
                row.fingerprint,
                row.count,
                row.trouble.code,
                names.get(row.trouble.target, row.trouble.target),
                ", ".join(names.get(each, each) for each in row.automation_ids[:NAMED]),
                show_instant(row.first_at),
                show_instant(row.last_at),
                row.newest_run_id,
                row.trouble.message,
            )
            for row in rows
        ),
    )


def _document(row: DeadGroup) -> Mapping[str, Any]:
    return {
        "fingerprint": row.fingerprint,
        "code": row.trouble.code,
        "target": row.trouble.target,
        "message": row.trouble.message,
        "automation_ids": row.automation_ids,
        "count": row.count,
        "first_at": row.first_at,
        "last_at": row.last_at,
        "run_id": row.newest_run_id,
    }


@group.command("replay")
@takes(ReplayDeadOptions)
def replay_dead(options: ReplayDeadOptions) -> None:
    """Run dead letters again, from the action that failed."""
    given = [bool(options.run_ids), options.automation is not None, options.everything]
    if sum(given) > 1:
        raise typer.BadParameter("give only one of run ids, --automation KEY and --all")
    if not any(given):
        raise typer.BadParameter("give run ids, --automation KEY or --all")
    start = start_of(options.from_start)
    if options.run_ids:
        _check_dead(options.workspace, options.run_ids)
        print_replays(replay_all(options.run_ids, options.workspace, start), start, options.output)
    else:
        fulfil(read_wish(BulkKind.REPLAY, Narrowed(automation=options.automation), start), options)


def _check_dead(workspace: str, run_ids: list[str]) -> None:
    """Raise Conflict for a run that failed without being a dead letter."""
    with opened_database() as database, database.read() as conn:
        found = find_run_rows(conn, workspace, run_ids)
    failed = [run_id for run_id in run_ids if run_id in found and found[run_id].status is RunStatus.FAILED]
    if failed:
        fix = f"knockon runs replay {' '.join(failed)}"
        raise Conflict(f"run {failed[0]} is FAILED and no dead letter; replay it with: {fix}")
