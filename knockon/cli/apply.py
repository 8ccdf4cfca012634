"""`knockon apply`: make a workspace's automations what the files say."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from knockon.cli.connections import (
    caller,
    opened_database,
    opened_with_redis_or_without,
    read_settings,
)
from knockon.cli.options import DEFAULT_WORKSPACE, Output, Workspace, takes
from knockon.cli.output import Form, print_json, print_line
from shared.errors import ConfigError, DefinitionError, Fault
from shared.model.automation import Definition, load_yaml
from shared.model.delays import delay_of, show_runs_after
from shared.model.webhook_targets import check_targets
from shared.model.yaml_text import WHOLE
from shared.services.automations import apply_changes, preview_changes
from shared.services.definitions import Change, ChangeKind, Leftovers

STDIN = Path("-")


def parse_file(name: str) -> Path:
    """Read the name of a file; an empty one would be the working folder."""
    if not name:
        raise typer.BadParameter("give a file, or - for stdin")
    return Path(name)


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """Which files, and how far to go."""

    file: Annotated[
        list[Path],
        typer.Option(
            "--file", "-f", parser=parse_file, metavar="FILE", help="A YAML file, or - for stdin; repeat it."
        ),
    ]
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False
    prune: Annotated[bool, typer.Option("--prune", help="Delete automations that no file names.")] = False
    workspace: Workspace = DEFAULT_WORKSPACE
    output: Output = Form.TABLE


def add_to(app: typer.Typer) -> None:
    """Add this command to the top."""
    app.command("apply")(apply)


@takes(ApplyOptions)
def apply(options: ApplyOptions) -> None:
    """Create and update automations by their keys; what is the same already is left alone."""
    definitions = read_definitions(options.file)
    if not read_settings().webhook_allow_private:
        check_targets(definitions)
    leftovers = Leftovers.DELETE if options.prune else Leftovers.KEEP
    who = caller(options.workspace)
    if options.dry_run:
        with opened_database() as database:
            changes = preview_changes(database, who, definitions, leftovers)
    else:
        with opened_with_redis_or_without() as backends:
            changes = apply_changes(backends, who, definitions, leftovers)
    if options.output is Form.JSON:
        print_json({"dry_run": options.dry_run, "changes": [change.shown() for change in changes]})
        return
    for change in changes:
        _print_change(change)
    done = "would change" if options.dry_run else "changed"
    number = sum(change.kind is not ChangeKind.UNCHANGED for change in changes)
    print_line(f"{number} of {len(changes)} {done}")


def read_definitions(files: Sequence[Path]) -> list[Definition]:
    """Read all files. Raises DefinitionError with every fault, the file in front of its path."""
    definitions: list[Definition] = []
    faults: list[Fault] = []
    first_of: dict[str, Path] = {}
    for file in files:
        try:
            found = load_yaml(_read(file))
        except DefinitionError as error:
            faults += [Fault(f"{file}: {fault.path}", fault.message) for fault in error.faults]
            continue
        for definition in found:
            if definition.key in first_of:
                faults.append(Fault(f"{file}: {definition.key}", f"is in {first_of[definition.key]} too"))
            first_of.setdefault(definition.key, file)
        definitions += found
    if faults:
        raise DefinitionError(faults)
    return definitions


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if file == STDIN else file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DefinitionError([Fault(WHOLE, "is not UTF-8")]) from error
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error


def _print_change(change: Change) -> None:
    style = {"created": "green", "updated": "yellow", "deleted": "red"}.get(change.kind, "dim")
    badge = show_runs_after(delay_of(change.after or {}))
    print_line(f"{change.kind:<9}  {change.key}{f'  ({badge})' if badge else ''}", style)
    if change.kind is ChangeKind.UPDATED:
        for line in change.diff():
            print_line(f"    {line}", {"+": "green", "-": "red"}.get(line[:1], ""))
