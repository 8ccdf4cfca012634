"""`knockon alerts`: the troubles that people are told of, and the channels that tell them."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import typer

from executors.targets import parse_target
from knockon.cli.connections import caller, opened_database, read_settings
from knockon.cli.options import DEFAULT_WORKSPACE, Limit, Output, Workspace, takes
from knockon.cli.output import Form, print_json, print_line, print_table, show_instant
from knockon.cli.tail import parse_span
from shared.db.alert_channels import Channel, list_channels
from shared.db.alert_groups import GroupRow, list_groups
from shared.db.alert_sends import ChannelKind
from shared.db.dead_groups import count_dead
from shared.db.dead_letters import automation_names
from shared.errors import ConfigError
from shared.model.mail_config import read_address
from shared.process import FAILED
from shared.rules.alerting import state_of
from shared.sealing import Seal, Unreadable
from shared.secrets import find_seal
from shared.services.alerts import NewChannel, add_channel, check_reach, mute_alerts, remove_channel
from shared.services.sealed import opens, seal_to_write
from shared.time.clock import SystemClock
from timers.alert_choices import title_of
from timers.alert_trials import Trials
from timers.alert_ways import open_ways

group = typer.Typer(help="What people are told of dead letters.", no_args_is_help=True)
channels = typer.Typer(help="Webhooks that are told of dead letters.", no_args_is_help=True)

DAY: Final = timedelta(days=1)
SECRET_CHARS: Final = 1_000

Name = Annotated[str, typer.Argument(metavar="NAME", help="The channel's name.")]


def _parse_address(text: str) -> str:
    try:
        return read_address(text).addr_spec
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which groups, and how to print."""

    limit: Limit = 20
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class MuteOptions:
    """Which group, and for how long."""

    group: Annotated[str, typer.Argument(metavar="ID", help="Its fingerprint, as `alerts list` shows it.")]
    span: Annotated[
        timedelta | None,
        typer.Option("--for", parser=parse_span, metavar="24h", help="How long, else 24h; 0s ends it."),
    ] = None
    workspace: Workspace = DEFAULT_WORKSPACE


@dataclass(frozen=True, slots=True)
class TestOptions:
    """Whom to send a sample beside the channels, and how to print."""

    to: Annotated[
        str | None, typer.Option(parser=_parse_address, metavar="ADDRESS", help="Mail a sample here, too.")
    ] = None
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class ChannelsOptions:
    """Which workspace, and how to print."""

    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@dataclass(frozen=True, slots=True)
class AddOptions:
    """What to tell."""

    name: Name
    url: Annotated[str, typer.Argument(metavar="URL", help="Where messages are posted.")]
    secret: Annotated[
        bool, typer.Option("--secret", help="Sign with the secret that stands on stdin, or is typed unseen.")
    ] = False
    workspace: Workspace = DEFAULT_WORKSPACE


@dataclass(frozen=True, slots=True)
class RemoveOptions:
    """Which channel."""

    name: Name
    workspace: Workspace = DEFAULT_WORKSPACE


def add_to(app: typer.Typer) -> None:
    """Add these commands to the top, under one name."""
    group.add_typer(channels, name="channels")
    app.add_typer(group, name="alerts")


@group.command("list")
@takes(ListOptions)
def list_all(options: ListOptions) -> None:
    """List a workspace's troubles, that with the newest dead letter first."""
    with opened_database() as database, database.read() as conn:
        rows = list_groups(conn, options.workspace, most=options.limit)
        left = count_dead(conn, options.workspace, [row.fingerprint for row in rows])
        names = automation_names(conn, (row.group.automation_id for row in rows if row.group.automation_id))
    now = SystemClock().now()
    shown = [{**_group(row, now), "left": left[row.fingerprint]} for row in rows]
    if options.output is Form.JSON:
        print_json(shown)
        return
    print_table(
        ("ID", "STATE", "COUNT", "LEFT", "TOLD", "MESSAGES", "FIRST", "LAST", "CODE", "WHERE", "MESSAGE"),
        (
            (
                each["fingerprint"],
                each["state"],
                each["count"],
                each["left"],
                each["told"],
                each["messages"],
                show_instant(each["first_at"]),
                show_instant(each["last_at"]),
                each["code"],
                names.get(each["target"], each["target"]),
                each["message"],
            )
            for each in shown
        ),
    )


def _group(row: GroupRow, now: datetime) -> Mapping[str, Any]:
    newest = max(row.group.told.values(), key=lambda told: told.at, default=None)
    return {
        "id": row.group.id,
        "fingerprint": row.fingerprint,
        "state": state_of(row.group, newest, now),
        "count": row.group.count,
        "told": row.told,
        "messages": row.times,
        "first_at": row.first_at,
        "last_at": row.last_at,
        "told_at": newest.at if newest else None,
        "muted_until": row.group.muted_until,
        "code": row.code,
        "target": row.target,
        "automation_id": row.group.automation_id,
        "title": title_of(row),
        "automations": row.automations,
        "message": row.body,
        "run_id": row.run_id,
    }


@group.command("mute")
@takes(MuteOptions)
def mute(options: MuteOptions) -> None:
    """Hear nothing of a trouble for a while; what it counts meanwhile is told afterwards."""
    with opened_database() as database:
        span = DAY if options.span is None else options.span
        wanted = (options.group, span)
        row, until = mute_alerts(database, SystemClock(), caller(options.workspace), wanted)
    what = f"{row.code}, {title_of(row) if row.target == row.group.automation_id else row.target}"
    print_line(f"{what}: muted until {show_instant(until)}" if span else f"{what}: not muted")


@group.command("test")
@takes(TestOptions)
def test(options: TestOptions) -> None:
    """Send a real sample through each channel, and to an address; exit code 1 if one does not arrive."""
    settings = read_settings()
    with opened_database() as database:
        ways = open_ways(settings, SystemClock())
        trials = list(Trials(settings, database, ways).run(options.workspace, options.to))
        ways.http.close()
    if not trials:
        raise ConfigError("there is nothing to test: add a channel, or name an address with --to")
    if options.output is Form.JSON:
        print_json([asdict(trial) for trial in trials])
    else:
        rows = ((trial.channel, trial.target, trial.error or "ok") for trial in trials)
        print_table(("CHANNEL", "TARGET", "OUTCOME"), rows)
    if any(trial.error is not None for trial in trials):
        raise typer.Exit(FAILED)


@channels.command("list")
@takes(ChannelsOptions)
def list_them(options: ChannelsOptions) -> None:
    """List a workspace's channels and how they fare; of a URL only the host is shown."""
    found = find_seal(read_settings())
    with opened_database() as database, database.read() as conn:
        rows = list_channels(conn, options.workspace)
    shown = [_channel(row, found.seal if found else None) for row in rows]
    if options.output is Form.JSON:
        print_json(shown)
        return
    print_table(
        ("NAME", "KIND", "STATE", "FAILURES", "HOST", "SIGNED", "BROKEN SINCE", "CREATED"),
        (
            (
                each["name"],
                each["kind"],
                each["state"],
                each["failures"],
                each["host"],
                "yes" if each["signed"] else "",
                show_instant(each["broken_at"]),
                show_instant(each["created_at"]),
            )
            for each in shown
        ),
    )


def _channel(row: Channel, seal: Seal | None) -> Mapping[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "kind": row.kind,
        "state": _state(row, seal),
        "failures": row.failures,
        "host": _host(row, seal),
        "signed": row.secret is not None,
        "broken_at": row.broken_at,
        "created_at": row.created_at,
    }


def _state(row: Channel, seal: Seal | None) -> str:
    if row.kind is ChannelKind.WEBHOOK and not opens(seal, filter(None, (row.url, row.secret))):
        return "unreadable"
    return "broken" if row.broken_at else "failing" if row.failures else "ok"


def _host(row: Channel, seal: Seal | None) -> str | None:
    if row.kind is ChannelKind.MAIL or seal is None:
        return None
    try:
        return parse_target(seal.open(row.url)).host
    except Unreadable:
        return None


@channels.command("add")
@takes(AddOptions)
def add(options: AddOptions) -> None:
    """Tell a webhook of dead letters from now on; its URL is stored encrypted."""
    settings = read_settings()
    host = parse_target(options.url).host
    if not settings.webhook_allow_private:
        check_reach(options.url)
    secret = _ask_secret() if options.secret else None
    wanted = NewChannel(options.name, options.url, secret)
    with opened_database() as database:
        seal = seal_to_write(database, settings)
        add_channel(database, SystemClock(), seal, caller(options.workspace), wanted)
    print_line(f"{options.name} tells {host}; try it with: knockon alerts test")


@channels.command("remove")
@takes(RemoveOptions)
def remove(options: RemoveOptions) -> None:
    """Tell a webhook no more."""
    with opened_database() as database:
        remove_channel(database, SystemClock(), caller(options.workspace), options.name)
    print_line("removed")


def _ask_secret() -> str:
    if sys.stdin.isatty():
        typed: str = typer.prompt("Signing secret", hide_input=True, err=True)
        return typed
    return sys.stdin.read(SECRET_CHARS).strip()
