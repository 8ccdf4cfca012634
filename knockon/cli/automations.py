"""`knockon automations`: what there is, one of them whole, on, off, by hand, and when it fires."""

import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
import yaml

from knockon.cli.connections import (
    caller,
    opened_backends,
    opened_database,
    opened_with_redis_or_without,
)
from knockon.cli.dry_runs import run_dry
from knockon.cli.options import DEFAULT_WORKSPACE, ListOptions, Output, Workspace, Yes, takes
from knockon.cli.output import Form, print_json, print_line, print_note, print_table, show_instant
from knockon.event_lines import read_payload
from shared.db.automations import AutomationRow, list_automations
from shared.masking import mask_definition
from shared.model.delays import delay_of, show_delay, show_runs_after
from shared.services.arming_existing import activate_and_arm
from shared.services.automations import activate, delete, pause
from shared.services.fires import Fire, preview_fires, schedule_of
from shared.services.references import check_workspace, find_automation
from shared.services.runs import start_by_hand
from shared.time.clock import SystemClock, from_epoch_ms

group = typer.Typer(help="What there is; on, off, by hand.", no_args_is_help=True)
group.command("dry-run")(run_dry)

Reference = Annotated[str, typer.Argument(metavar="KEY", help="The automation's key or id.")]


@dataclass(frozen=True, slots=True)
class OneOptions:
    """Which automation, and how to print."""

    reference: Reference
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Which automation, whether to ask first, and how to print."""

    reference: Reference
    yes: Yes = False
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class ActivateOptions:
    """Which automation, what it waits for, and how to print."""

    reference: Reference
    arm_existing: Annotated[
        bool,
        typer.Option("--arm-existing", help="With a delay: wait for what is in its state already, too."),
    ] = False
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class NextOptions:
    """Which automation, how far ahead, and how to print."""

    reference: Reference
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=100, help="So many fires.")] = 5
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Which automation, and the event that it runs for."""

    reference: Reference
    payload: Annotated[str, typer.Option(help="The event's payload, a JSON object.")] = "{}"
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    app.add_typer(group, name="automations")


@group.command("list")
@takes(ListOptions)
def list_all(options: ListOptions) -> None:
    """List a workspace's automations."""
    with opened_database() as database, database.read() as conn:
        check_workspace(conn, options.workspace)
        rows = list_automations(conn, options.workspace)
    if options.output is Form.JSON:
        print_json([_document(row) for row in rows])
        return
    print_table(
        ("KEY", "NAME", "STATUS", "TRIGGER", "RUNS", "VERSION", "ACTIVE SINCE", "ID"),
        (
            (row.key, row.name, row.status, _trigger(row), _runs(row), row.version, _since(row), row.id)
            for row in rows
        ),
    )


@group.command("show")
@takes(OneOptions)
def show_one(options: OneOptions) -> None:
    """Show one automation as its author wrote it."""
    with opened_database() as database, database.read() as conn:
        row = find_automation(conn, options.workspace, options.reference)
        schedule = schedule_of(conn, row)
    next_fire_at = schedule.next_fire_at if schedule else None
    if options.output is Form.JSON:
        print_json({**_document(row), "next_fire_at": next_fire_at})
        return
    text = yaml.safe_dump(mask_definition(row.definition), sort_keys=False, allow_unicode=True)
    more = f", next fire {show_instant(next_fire_at)}" if next_fire_at else ""
    badge = show_runs_after(delay_of(row.definition))
    waits = f", {badge}" if badge else ""
    print_line(f"# {row.id}, version {row.version}, {row.status}{waits}{more}\n{text.rstrip()}")


@group.command("next")
@takes(NextOptions)
def show_next(options: NextOptions) -> None:
    """Show when an automation with the trigger SCHEDULE fires next; of one that is not ACTIVE, would fire."""
    now = SystemClock().now()
    with opened_database() as database, database.read() as conn:
        row = find_automation(conn, options.workspace, options.reference)
        found = preview_fires(conn, row, now, options.count)
    if options.output is Form.JSON:
        print_json({"key": row.key, "status": row.status, **found.shown()})
        return
    last = f", last slot {show_instant(found.last_slot)}" if found.last_slot else ""
    print_line(f"{row.key} is {row.status}, {found.cron} in {found.timezone}{last}")
    print_table(
        ("UTC", found.timezone.upper(), ""),
        ((show_instant(fire.at), _local(fire), fire.remark) for fire in found.fires),
    )


@group.command("activate")
@takes(ActivateOptions)
def turn_on(options: ActivateOptions) -> None:
    """Let an automation match from now on; its waiting runs go on."""
    who, found = caller(options.workspace), None
    with opened_backends() as backends:
        if options.arm_existing:
            turned, found = activate_and_arm(backends, who, options.reference)
        else:
            turned = activate(backends, who, options.reference)
    if options.output is Form.JSON:
        done = {"changed": turned.changed, "runs_woken": turned.woken}
        existing = None if found is None else asdict(found)
        print_json({**_document(turned.row), **done, "existing": existing})
        return
    more = f"; {turned.woken} waiting runs go on" if turned.woken else ""
    print_line(
        f"{turned.row.key} is ACTIVE{more}" if turned.changed else f"{turned.row.key} was ACTIVE already"
    )
    if found is not None:
        rest = "" if found.is_whole else " newest"
        print_line(f"armed for {found.armed:,} of the {found.looked_at:,}{rest} subjects there are")


@group.command("pause")
@takes(OneOptions)
def turn_off(options: OneOptions) -> None:
    """Let an automation match nothing; what runs finishes, what waits stays."""
    with opened_with_redis_or_without() as backends:
        turned = pause(backends, caller(options.workspace), options.reference)
    if options.output is Form.JSON:
        print_json({**_document(turned.row), "changed": turned.changed})
        return
    print_line(f"{turned.row.key} is PAUSED" if turned.changed else f"{turned.row.key} was PAUSED already")


@group.command("delete")
@takes(DeleteOptions)
def delete_one(options: DeleteOptions) -> None:
    """Delete an automation; what waits for it is given up, the history of its runs stays."""
    if not options.yes:
        question = f"{options.reference} is deleted, and what waits for it is given up"
        if options.output is Form.JSON or not sys.stdin.isatty():
            raise typer.BadParameter(f"{question} if you give --yes; nobody can be asked here")
        print_note(question)
        typer.confirm("Go on?", err=True, abort=True)
    with opened_with_redis_or_without() as backends:
        row = delete(backends, caller(options.workspace), options.reference)
    if options.output is Form.JSON:
        print_json({"id": row.id, "key": row.key, "deleted": True})
        return
    print_line(f"{row.key} is deleted")


@group.command("run")
@takes(RunOptions)
def run_by_hand(options: RunOptions) -> None:
    """Start one run of an automation by hand."""
    payload = read_payload(options.payload)
    with opened_backends() as backends:
        run_id = start_by_hand(backends, caller(options.workspace), options.reference, payload)
    if options.output is Form.JSON:
        print_json({"run_id": run_id})
        return
    print_line(run_id)
    print_note(f"see it with: knockon runs show {run_id}")


def _local(fire: Fire) -> str:
    return f"{fire.local:%a %Y-%m-%d %H:%M:%S %Z}"


def _trigger(row: AutomationRow) -> str:
    trigger = row.definition["trigger"]
    config = trigger.get("config", {})
    more = config.get("eventType") or config.get("cron") or ""
    return f"{trigger['type']} {more}".strip()


def _runs(row: AutomationRow) -> str:
    minutes = delay_of(row.definition)
    return "at once" if minutes is None else f"after {show_delay(minutes)}"


def _since(row: AutomationRow) -> str:
    return show_instant(from_epoch_ms(row.activated_ms)) if row.activated_ms is not None else ""


def _document(row: AutomationRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "workspace_id": row.workspace_id,
        "key": row.key,
        "name": row.name,
        "status": row.status,
        "version": row.version,
        "activated_at": from_epoch_ms(row.activated_ms) if row.activated_ms is not None else None,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "definition": mask_definition(row.definition),
        "runs_after": show_runs_after(delay_of(row.definition)),
    }
