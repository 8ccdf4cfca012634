"""`knockon audit`: who did what in a workspace."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Annotated

import typer

from knockon.cli.connections import opened_database
from knockon.cli.options import DEFAULT_WORKSPACE, Limit, Output, Workspace, takes
from knockon.cli.output import Form, print_json, print_table, show_instant, show_json
from knockon.cli.tail import parse_span
from shared.db.audit_reads import AuditQuery, list_audit
from shared.model.audit_kinds import AuditKind
from shared.time.clock import SystemClock

group = typer.Typer(help="Who did what.", no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which entries, and how to print."""

    resource: Annotated[
        str | None, typer.Option(metavar="TYPE[:ID]", help="Only this kind of thing, or this one thing.")
    ] = None
    since: Annotated[
        timedelta | None, typer.Option(parser=parse_span, metavar="24h", help="Only what is no older.")
    ] = None
    limit: Limit = 20
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="audit")


@group.command("list")
@takes(ListOptions)
def list_all(options: ListOptions) -> None:
    """List what was done in a workspace, newest first."""
    kind, thing = _read_resource(options.resource) if options.resource is not None else (None, None)
    query = AuditQuery(
        workspace_id=options.workspace,
        most=options.limit,
        resource_type=kind,
        resource_id=thing,
        since=SystemClock().now() - options.since if options.since else None,
    )
    with opened_database() as database, database.read() as conn:
        rows = list_audit(conn, query)
    if options.output is Form.JSON:
        print_json([asdict(row) for row in rows])
        return
    print_table(
        ("AT", "WHO", "DID", "TO", "DETAIL"),
        (
            (
                show_instant(row.at),
                row.actor,
                row.action,
                f"{row.resource_type}:{row.resource_id}",
                show_json(row.detail),
            )
            for row in rows
        ),
    )


def _read_resource(text: str) -> tuple[AuditKind, str | None]:
    kind, _, thing = text.partition(":")
    try:
        return AuditKind(kind), thing or None
    except ValueError as error:
        said = f"there are no entries about {kind!r}; known are {', '.join(AuditKind)}"
        raise typer.BadParameter(said, param_hint="--resource") from error
