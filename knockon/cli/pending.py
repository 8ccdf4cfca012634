"""`knockon pending`: what waits before it acts, what became of it, and cancelling it."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from knockon.cli.connections import caller, opened_database, opened_with_redis_or_without
from knockon.cli.options import DEFAULT_WORKSPACE, Limit, Output, Workspace, at_option, takes
from knockon.cli.output import Form, print_json, print_line, print_table, show_instant
from shared.db.pending_lists import PendingQuery, list_pending
from shared.db.pending_reads import PendingSummary
from shared.masking import mask_tree
from shared.model.delays import show_delay
from shared.model.pending import PendingSkip, PendingStatus
from shared.model.subjects import SubjectRef
from shared.services.pending import cancel_waiting, check_filters, get_pending
from shared.services.pending_shown import pending_document
from shared.services.references import check_workspace, ever_automation_id

group = typer.Typer(help="What waits before it acts.", no_args_is_help=True)

PendingId = Annotated[str, typer.Argument(metavar="ID", help="The pending execution's id.")]


def parse_subject(text: str) -> SubjectRef:
    """Read `TYPE:ID`. Raises BadParameter."""
    type_, colon, id_ = text.partition(":")
    if not (type_ and colon and id_):
        raise typer.BadParameter(f"{text!r} is no subject; give TYPE:ID, as conversation:17")
    return SubjectRef(type_, id_)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which of them, and how to print."""

    status: Annotated[PendingStatus | None, typer.Option(case_sensitive=False, help="Only these.")] = None
    reason: Annotated[
        PendingSkip | None, typer.Option(case_sensitive=False, help="Only those skipped for this.")
    ] = None
    automation: Annotated[str | None, typer.Option(metavar="KEY", help="Only this automation's.")] = None
    subject: Annotated[
        SubjectRef | None, typer.Option(parser=parse_subject, metavar="TYPE:ID", help="Only about this one.")
    ] = None
    limit: Limit = 20
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class OneOptions:
    """Which one, and how to print."""

    pending_id: PendingId
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="pending")


@group.command("list")
@takes(ListOptions)
def list_some(options: ListOptions) -> None:
    """List what waits or has waited, newest first; with --status pending what is due first."""
    with at_option("--reason"):
        check_filters(options.status, options.reason)
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, options.workspace)
        query = PendingQuery(
            workspace_id=options.workspace,
            most=options.limit,
            status=options.status,
            skip_reason=options.reason,
            automation_id=ever_automation_id(conn, options.workspace, options.automation or None),
            subject=options.subject,
        )
        rows = list_pending(conn, query)
    if options.output is Form.JSON:
        print_json([pending_document(row) for row in rows])
        return
    print_table(
        ("ID", "AUTOMATION", "RUNS", "SUBJECT", "STATUS", "SINCE", "DUE", "RUN"),
        (
            (
                row.id,
                row.automation_key,
                "" if row.delay_min is None else f"after {show_delay(row.delay_min)}",
                f"{row.subject.type}:{row.subject.id}",
                standing(row),
                show_instant(row.started_at),
                show_instant(row.due_at),
                row.run_id,
            )
            for row in rows
        ),
    )


@group.command("show")
@takes(OneOptions)
def show_one(options: OneOptions) -> None:
    """Show one, with the event that armed it."""
    with opened_database() as database, database.read() as conn:
        detail = get_pending(conn, caller(options.workspace), options.pending_id)
    event = mask_tree(detail.trigger_event)
    if options.output is Form.JSON:
        print_json({**pending_document(detail.row), "trigger_event": event})
        return
    for name, value in _facts(detail.row).items():
        if value not in ("", None):
            print_line(f"{name:<13}  {value}")
    print_line(f"{'armed by':<13}  {event['type']} {event['entryId']}")


@group.command("cancel")
@takes(OneOptions)
def cancel_one(options: OneOptions) -> None:
    """Keep one that waits from firing; only the next episode arms anew."""
    with opened_with_redis_or_without() as backends:
        row = cancel_waiting(backends, caller(options.workspace), options.pending_id)
    if options.output is Form.JSON:
        print_json(pending_document(row))
        return
    print_line("cancelled")


def standing(row: PendingSummary) -> str:
    """Say how it stands, and of a skipped one why."""
    return row.status if row.skip_reason is None else f"{row.status}: {row.skip_reason}"


def _facts(row: PendingSummary) -> dict[str, Any]:
    return {
        "pending": row.id,
        "automation": f"{row.automation_name} ({row.automation_key})",
        "runs": "" if row.delay_min is None else f"after {show_delay(row.delay_min)}",
        "subject": f"{row.subject.type}:{row.subject.id}",
        "status": standing(row),
        "anchor": row.anchor,
        "message": row.message_id,
        "since": show_instant(row.started_at),
        "due": show_instant(row.due_at),
        "run": row.run_id,
        "episode ended": show_instant(row.ended_at),
        "armed": show_instant(row.created_at),
    }
