"""`knockon notices`: the inboxes of a workspace's members."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from knockon.cli.connections import opened_database
from knockon.cli.options import DEFAULT_WORKSPACE, Limit, Output, Workspace, takes
from knockon.cli.output import Form, print_json, print_line, print_table, show_instant, show_start
from shared.db.dead_letters import RESOURCE
from shared.db.inbox import InboxItem
from shared.services.inbox import Inbox, Wanted, list_inbox, mark_all, mark_notices
from shared.time.clock import SystemClock

group = typer.Typer(help="What members were told.", no_args_is_help=True)

Member = Annotated[str | None, typer.Option(metavar="EMAIL", help="Only what this member was told.")]


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which notices, and how to print."""

    member: Member = None
    unread: Annotated[bool, typer.Option("--unread", help="Only what nobody marked as read.")] = False
    limit: Limit = 20
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Which notices are marked, and how to print."""

    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids that `notices list` shows.")] = (
        None
    )
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False
    member: Member = None
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="notices")


@group.command("list")
@takes(ListOptions)
def list_some(options: ListOptions) -> None:
    """List what a workspace's members were told, newest first."""
    inbox = Inbox(options.workspace, options.member)
    wanted = Wanted.UNREAD if options.unread else Wanted.ALL
    with opened_database() as database:
        items = list_inbox(database, inbox, wanted, most=options.limit)
    if options.output is Form.JSON:
        print_json([_document(item) for item in items])
        return
    print_table(
        ("ID", "AT", "MEMBER", "TITLE", "BODY", "RUN", "READ"),
        (
            (
                item.id,
                show_instant(item.created_at),
                item.member,
                show_start(item.title),
                show_start(item.body),
                _run_id(item),
                show_instant(item.read_at) or "no",
            )
            for item in items
        ),
    )


@group.command("read")
@takes(ReadOptions)
def read_some(options: ReadOptions) -> None:
    """Mark notices as read."""
    if bool(options.ids) == options.everything:
        raise typer.BadParameter("give ids, or --all")
    inbox = Inbox(options.workspace, options.member)
    with opened_database() as database:
        if options.ids:
            marked = mark_notices(database, SystemClock(), inbox, options.ids)
        else:
            marked = mark_all(database, SystemClock(), inbox)
    if options.output is Form.JSON:
        print_json({"marked": marked})
        return
    print_line(f"{marked} marked as read" if marked else "there is nothing to mark")


def _document(item: InboxItem) -> Mapping[str, Any]:
    return {**asdict(item), "run_id": _run_id(item)}


def _run_id(item: InboxItem) -> str | None:
    return item.resource_id if item.resource_type == RESOURCE else None
