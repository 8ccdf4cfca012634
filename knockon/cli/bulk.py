"""`knockon bulk`: what is being done to many runs, how far it has come, and an end to it."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from knockon.cli.connections import caller, opened_backends, opened_database
from knockon.cli.options import DEFAULT_WORKSPACE, Limit, Output, Workspace, takes
from knockon.cli.output import Form, print_json, print_line, print_table, show_instant
from shared.db.bulk import BulkOperation, list_operations
from shared.services.bulk import cancel_bulk, document_of, show_bulk
from shared.services.references import check_workspace

group = typer.Typer(help="What is done to many runs at once.", no_args_is_help=True)

OperationId = Annotated[str, typer.Argument(metavar="ID", help="The operation's id.")]


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which operations, and how to print."""

    limit: Limit = 20
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class OneOptions:
    """Which operation, and how to print."""

    id: OperationId
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="bulk")


@group.command("list")
@takes(ListOptions)
def list_all(options: ListOptions) -> None:
    """List a workspace's operations on many runs, newest first."""
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, options.workspace)
        rows = list_operations(conn, options.workspace, most=options.limit)
    if options.output is Form.JSON:
        print_json([document_of(row) for row in rows])
        return
    print_table(
        ("ID", "KIND", "STATUS", "DONE", "SKIPPED", "OF", "FILTER", "BY", "CREATED", "ENDED"),
        (
            (
                row.id,
                row.kind,
                row.status,
                row.done,
                row.passed,
                total(row),
                _filter(row),
                row.created_by,
                show_instant(row.created_at),
                show_instant(row.ended_at),
            )
            for row in rows
        ),
    )


@group.command("show")
@takes(OneOptions)
def show_one(options: OneOptions) -> None:
    """Show one operation, and how far it has come."""
    with opened_database() as database, database.read() as conn:
        _print(show_bulk(conn, options.workspace, options.id), options.output)


@group.command("cancel")
@takes(OneOptions)
def cancel_one(options: OneOptions) -> None:
    """End an operation where it stands; the runs that it has not reached are left as they are."""
    with opened_backends() as backends:
        cancelled = cancel_bulk(backends, caller(options.workspace), options.id)
    if options.output is Form.JSON:
        print_json(document_of(cancelled))
        return
    print_line(f"cancelled; {cancelled.done:,} of {total(cancelled)} were done")


def total(operation: BulkOperation) -> str:
    """Write how many runs an operation is about."""
    return f"more than {operation.total:,}" if operation.is_more else f"{operation.total:,}"


def _print(operation: BulkOperation, output: Form) -> None:
    if output is Form.JSON:
        print_json(document_of(operation))
        return
    facts: dict[str, Any] = {
        "operation": operation.id,
        "kind": operation.kind,
        "status": operation.status,
        "filter": _filter(operation),
        "begins": (operation.start or "").replace("_", " "),
        "runs": total(operation),
        "done": f"{operation.done:,}",
        **{f"skipped, {why.replace('_', ' ')}": f"{count:,}" for why, count in operation.skipped.items()},
        "created": f"{show_instant(operation.created_at)} by {operation.created_by}",
        "confirmed": operation.confirmed_at
        and f"{show_instant(operation.confirmed_at)} by {operation.confirmed_by}",
        "ended": show_instant(operation.ended_at),
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        if value not in ("", None):
            print_line(f"{name:<{width}}  {value}")


def _filter(operation: BulkOperation) -> str:
    shown = {name: value for name, value in operation.filter.items() if name != "automation_id"}
    return ", ".join(f"{name} {value}" for name, value in shown.items())
