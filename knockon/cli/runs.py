"""`knockon runs`: what ran, one run with its whole history, once more, or not at all."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

import typer

from knockon.cli import moves
from knockon.cli.connections import opened_database
from knockon.cli.options import DEFAULT_WORKSPACE, Limit, Output, Workspace, at_option, takes
from knockon.cli.output import (
    Form,
    print_json,
    print_line,
    print_table,
    show_instant,
    show_json,
    show_span,
)
from knockon.cli.pending import standing
from shared.db.log_reads import LogRow, run_log
from shared.db.pending_reads import PendingSummary
from shared.db.reads import RunDetail, RunSummary, read_run
from shared.db.run_lists import RunQuery, list_runs
from shared.errors import NotFound
from shared.masking import mask_text, mask_tree
from shared.model.moves import RunStatus
from shared.model.runs import RunSource
from shared.services.pending_shown import pending_document
from shared.services.references import check_workspace, ever_automation_id
from shared.services.runs import check_filters

group = typer.Typer(help="What ran; once more, or not at all.", no_args_is_help=True)

LOG_LINES: Final = 500

RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="The run's id.")]


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which runs, and how to print."""

    status: Annotated[RunStatus | None, typer.Option(case_sensitive=False, help="Only these.")] = None
    automation: Annotated[str | None, typer.Option(metavar="KEY", help="Only this automation's.")] = None
    source: Annotated[
        RunSource | None, typer.Option(case_sensitive=False, help="Only those that this made.")
    ] = None
    fingerprint: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only the dead letters of this group of `knockon dead groups`."),
    ] = None
    limit: Limit = 20
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """Which run, and how to print."""

    run_id: RunId
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    moves.add_to(group)
    app.add_typer(group, name="runs")


@group.command("list")
@takes(ListOptions)
def list_some(options: ListOptions) -> None:
    """List a workspace's runs, newest first."""
    with at_option("--fingerprint"):
        check_filters(options.status, options.fingerprint)
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, options.workspace)
        wanted = ever_automation_id(conn, options.workspace, options.automation or None)
        query = RunQuery(
            options.workspace,
            options.limit,
            options.status,
            wanted,
            source=options.source,
            fingerprint=options.fingerprint,
        )
        rows = list_runs(conn, query)
    print_runs(rows, options.output)


@group.command("show")
@takes(ShowOptions)
def show_one(options: ShowOptions) -> None:
    """Show one run: its actions, attempts, log, and why it ended as it did."""
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, options.workspace)
        detail = read_run(conn, options.workspace, options.run_id)
        logs = run_log(conn, options.workspace, options.run_id, most=LOG_LINES)
    if detail is None:
        raise NotFound(f"there is no run {options.run_id!r} in workspace {options.workspace!r}")
    if options.output is Form.JSON:
        waited = None if detail.pending is None else pending_document(detail.pending)
        told = {**asdict(detail), "pending": waited, "logs": [asdict(line) for line in logs]}
        print_json(mask_tree(told))
        return
    _print_head(detail)
    _print_actions(detail)
    _print_attempts(detail)
    _print_logs(logs)


def print_runs(rows: Sequence[RunSummary], output: Form) -> None:
    """Print runs as a table or as JSON."""
    if output is Form.JSON:
        print_json([mask_tree(asdict(row)) for row in rows])
        return
    print_table(
        ("RUN", "AUTOMATION", "STATUS", "WHY", "RETRIES", "CREATED", "TOOK"),
        (
            (
                row.id,
                row.known_by,
                row.status,
                row.why,
                row.retry_count,
                show_instant(row.created_at),
                show_span(row.started_at, row.ended_at),
            )
            for row in rows
        ),
    )


def _print_head(detail: RunDetail) -> None:
    run = detail.run
    facts: dict[str, Any] = {
        "run": run.id,
        "automation": f"{run.automation_name} ({run.automation_key})" if run.automation_id else None,
        "name": None if run.automation_id else run.automation_name,
        "status": run.status,
        "why": run.why,
        "error": mask_text(run.error["message"]) if run.error else "",
        "trigger": run.trigger_type,
        "source": detail.source,
        "waited": "" if detail.pending is None else _waited(detail.pending),
        "retries": run.retry_count,
        "next attempt": show_instant(run.next_attempt_at),
        "stop asked": run.stop_reason if run.status is not RunStatus.CANCELLED else "",
        "depth": run.depth,
        "root run": run.root_run_id if run.root_run_id != run.id else "",
        "created": show_instant(run.created_at),
        "started": show_instant(run.started_at),
        "ended": show_instant(run.ended_at),
        "input": _masked(detail.input),
        "output": _masked(detail.output) if detail.output else "",
    }
    for name, value in facts.items():
        if value not in ("", None):
            print_line(f"{name:<12}  {value}")


def _waited(row: PendingSummary) -> str:
    since, due = show_instant(row.started_at), show_instant(row.due_at)
    return f"pending execution {row.id} since {since}, due {due}, {standing(row)}"


def _masked(tree: Any) -> str:
    return show_json(mask_tree(tree))


def _print_actions(detail: RunDetail) -> None:
    print_line("\nfinished actions", "bold")
    print_table(
        ("", "TYPE", "TOOK", "OUTPUT"),
        (
            (row.position, row.type, show_span(row.started_at, row.ended_at), _masked(row.output))
            for row in detail.actions
        ),
    )


def _print_attempts(detail: RunDetail) -> None:
    print_line("\nattempts", "bold")
    print_table(
        ("", "OUTCOME", "CODE", "ACTION", "MESSAGE", "ENDED"),
        (
            (
                number,
                row.outcome,
                row.code,
                row.position,
                mask_text(row.message or ""),
                show_instant(row.ended_at),
            )
            for number, row in enumerate(detail.attempts, start=1)
        ),
    )


def _print_logs(logs: Sequence[LogRow]) -> None:
    print_line("\nlog", "bold")
    print_table(
        ("AT", "LEVEL", "MESSAGE", ""),
        (
            (show_instant(row.at), row.level, row.message, _masked(row.data) if row.data else "")
            for row in logs
        ),
    )
