"""`knockon automations dry-run`: what an automation would do with an event, without doing it."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from knockon.cli.connections import opened_backends, read_settings
from knockon.cli.options import DEFAULT_WORKSPACE, Output, Workspace, takes
from knockon.cli.output import Form, print_json, print_line, show_instant
from knockon.cli.why_tables import print_actions, print_checks
from shared.errors import ConfigError, Conflict
from shared.model.events import Event
from shared.model.json_limits import read_object
from shared.services.backends import Backends
from shared.services.dry_runs import FIELDS, Trial, dry_run, trial_event
from shared.services.recorded import see_entry
from shared.services.why_shown import dry_run_document

STDIN: Final = "-"

_ENTRY_ID: Final = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class DryRunOptions:
    """Which automation, and which event."""

    reference: Annotated[str, typer.Argument(metavar="KEY", help="The automation's key or id.")]
    event: Annotated[
        str,
        typer.Option(
            metavar="EVENT", help="A file with one event in JSON, - for stdin, or the id of an entry."
        ),
    ]
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


@takes(DryRunOptions)
def run_dry(options: DryRunOptions) -> None:
    """Say what an automation would do with an event: every check, its actions rendered, and nothing done."""
    settings = read_settings()
    with opened_backends() as backends:
        trial = Trial(options.reference, _event(backends, options), is_recorded=_is_recorded(options))
        document = dry_run_document(dry_run(backends, settings, options.workspace, trial))
    if options.output is Form.JSON:
        print_json(document)
        return
    _print_verdict(document)
    print_checks(document)
    print_actions(document["actions"])


def _event(backends: Backends, options: DryRunOptions) -> Event:
    """Read the event, recorded or given. Raises NotFound, Conflict, BadEvent, ConfigError."""
    if not _is_recorded(options):
        fields = read_object("event", _read(options.event), spare=len(FIELDS) + 1)
        return trial_event(backends, options.workspace, fields.value)
    entry = see_entry(backends, options.workspace, options.event)
    if entry.event is None:
        raise Conflict(f"entry {options.event} holds no event: {entry.reason}")
    return entry.event


def _is_recorded(options: DryRunOptions) -> bool:
    return _ENTRY_ID.fullmatch(options.event) is not None


def _read(name: str) -> bytes:
    if name == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name or 'an empty name'}: {error.strerror}") from error


def _when(waits: Mapping[str, Any] | None) -> str:
    if waits is None:
        return "would run"
    if waits["already"] is None:
        return f"would run at {show_instant(waits['due_at'])}, if it is still so then"
    already = waits["already"]
    return f"would wait for nothing more: its episode has {already['id']} ({already['status']})"


def _print_verdict(document: Mapping[str, Any]) -> None:
    key, stopped = document["automation"]["key"], document["stopped_by"]
    if stopped is None:
        print_line(f"{key} {_when(document['waits'])}")
        return
    print_line(f"{key} would not run: {stopped['check']}: {stopped['reason']}")
    for leaf in document["blamed"]:
        print_line(f"  {leaf['path']}: {leaf['reason']}")
