"""`knockon sequences`: steps of idle sequences that wait, what became of them, and disarming one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer

from knockon.cli.connections import caller, opened_database
from knockon.cli.options import DEFAULT_WORKSPACE, Limit, Output, Workspace, takes
from knockon.cli.output import Form, print_json, print_line, print_table, show_instant
from shared.db.idle_lists import IdleQuery, IdleStepShown, find_sequence, list_idle_steps
from shared.model.event_fields import parse_instant
from shared.model.idle_steps import IdleStatus, IdleStop
from shared.services.references import check_workspace
from shared.services.sequences import disarm, get_step
from shared.services.sequences_shown import step_document, step_words
from shared.time.clock import SystemClock

group = typer.Typer(help="Conversations that have gone quiet, and what is to come.", no_args_is_help=True)

StepId = Annotated[str, typer.Argument(metavar="ID", help="The step's id, or that of its sequence.")]


def read_instant(text: str) -> datetime:
    """Read an RFC 3339 instant. Raises BadParameter."""
    try:
        return parse_instant(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} {error}") from error


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which of them, and how to print."""

    status: Annotated[IdleStatus | None, typer.Option(case_sensitive=False, help="Only these.")] = None
    reason: Annotated[
        IdleStop | None, typer.Option(case_sensitive=False, help="Only those stopped for this.")
    ] = None
    conversation: Annotated[str | None, typer.Option(metavar="ID", help="Only of this conversation.")] = None
    agent: Annotated[str | None, typer.Option(metavar="ID", help="Only of this AI agent.")] = None
    due_before: Annotated[
        datetime | None,
        typer.Option(parser=read_instant, metavar="INSTANT", help="Only due before, 2026-03-01T09:30:00Z."),
    ] = None
    limit: Limit = 20
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class OneOptions:
    """Which one, and how to print."""

    step_id: StepId
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="sequences")


@group.command("list")
@takes(ListOptions)
def list_some(options: ListOptions) -> None:
    """List steps of idle sequences, newest first; with --status pending what is due first."""
    query = IdleQuery(
        workspace_id=options.workspace,
        most=options.limit,
        status=options.status,
        reason=options.reason,
        conversation_id=options.conversation,
        agent_id=options.agent,
        due_before=options.due_before,
    )
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, options.workspace)
        steps = list_idle_steps(conn, query)
    if options.output is Form.JSON:
        print_json([step_document(step) for step in steps])
        return
    print_table(("ID", "CONVERSATION", "RULE OF", "STEP", "RUN"), map(_row, steps))


@group.command("show")
@takes(OneOptions)
def show_one(options: OneOptions) -> None:
    """Show a step, and all of its sequence."""
    with opened_database() as database, database.read() as conn:
        step = get_step(conn, caller(options.workspace), options.step_id)
        steps = find_sequence(conn, step.row)
    if options.output is Form.JSON:
        print_json({**step_document(step), "steps": [step_document(each) for each in steps]})
        return
    for name, value in _facts(step).items():
        if value not in ("", None):
            print_line(f"{name:<13}  {value}")
    print_table(("ID", "CONVERSATION", "RULE OF", "STEP", "RUN"), map(_row, steps))


@group.command("disarm")
@takes(OneOptions)
def disarm_one(options: OneOptions) -> None:
    """Keep a step that waits from firing, and all that would follow it."""
    with opened_database() as database:
        step = disarm(database, SystemClock(), caller(options.workspace), options.step_id)
    if options.output is Form.JSON:
        print_json(step_document(step))
        return
    print_line("disarmed")


def _row(step: IdleStepShown) -> tuple[str | None, ...]:
    row = step.row
    return row.id, row.conversation_id, _rule_of(step), step_words(row), row.run_id


def _rule_of(step: IdleStepShown) -> str:
    held_by = step.holder_name or step.row.agent_id or step.row.channel_id
    return f"{step.row.rule} {held_by}"


def _facts(step: IdleStepShown) -> dict[str, Any]:
    row = step.row
    return {
        "step": row.id,
        "sequence": row.sequence_id,
        "conversation": row.conversation_id,
        "rule of": _rule_of(step),
        "stands": step_words(row),
        "after message": row.anchor.message_id,
        "due": show_instant(row.due_at),
        "run": row.run_id,
        "ended": show_instant(row.ended_at),
        "armed": show_instant(row.created_at),
    }
