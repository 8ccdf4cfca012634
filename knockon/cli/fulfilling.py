"""How a command does something to many runs: it counts, asks, lets it begin, and shows how far it is."""

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

import typer
from pydantic import ValidationError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from knockon.cli.connections import caller, opened_backends
from knockon.cli.output import Form, console, print_json, print_line, print_note
from shared.beats import count_beating
from shared.db.bulk import BulkOperation
from shared.model.bulk import GOING, BulkFilter, BulkKind, BulkStatus, BulkWish, Passed
from shared.model.plain_words import words_for
from shared.process import FAILED, INTERRUPTED
from shared.redis_port import REDIS_ERRORS
from shared.services.backends import Backends, Caller
from shared.services.bulk import cancel_bulk, confirm, document_of, preview, show_bulk
from shared.services.runs import ReplayFrom
from shared.time.clock import SystemClock

POLL_S: Final = 0.25

_DONE: Final[Mapping[BulkKind, str]] = {BulkKind.REPLAY: "replayed", BulkKind.CANCEL: "cancelled"}
_SKIPPED: Final[Mapping[str, str]] = {
    Passed.MOVED_MEANWHILE: "moved meanwhile",
    Passed.AUTOMATION_DELETED: "of a deleted automation",
}


class Asked(Protocol):
    """What the options of such a command have in common."""

    @property
    def yes(self) -> bool:
        """Nobody is to be asked."""
        ...

    @property
    def workspace(self) -> str:
        """Whose runs they are."""
        ...

    @property
    def output(self) -> Form:
        """How to print."""
        ...


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A filter as options give it; `since` is how far back."""

    status: str | None = None
    automation: str | None = None
    since: timedelta | None = None
    code: str | None = None
    fingerprint: str | None = None

    def is_empty(self) -> bool:
        """Tell whether no option was given."""
        return self == Narrowed()


def read_wish(kind: BulkKind, wanted: Narrowed, start: ReplayFrom = ReplayFrom.FAILED_ACTION) -> BulkWish:
    """Make the wish that options stand for. Raises BadParameter for runs that there cannot be."""
    since = SystemClock().now() - wanted.since if wanted.since is not None else None
    given = {
        "status": wanted.status,
        "automation": wanted.automation,
        "from": since,
        "code": wanted.code,
        "fingerprint": wanted.fingerprint,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        return BulkWish(
            kind=kind, filter=BulkFilter.model_validate(chosen), from_start=start is ReplayFrom.START
        )
    except ValidationError as error:
        raise typer.BadParameter(words_for(error.errors(include_url=False)[0])) from None


def fulfil(wish: BulkWish, options: Asked) -> None:
    """Do what is wished for, once it is agreed to; with JSON it begins, and the operation is printed."""
    with opened_backends() as backends:
        who = caller(options.workspace)
        made = preview(backends, who, wish)
        if made.total == 0 or not _is_agreed(backends, who, made, options):
            _print_none(cancel_bulk(backends, who, made.id), options.output)
            return
        begun = confirm(backends, who, made.id)
        if options.output is Form.JSON:
            print_json(document_of(begun))
            return
        _warn_without_timers(backends)
        print_end(_watch(backends, who, begun))


def print_end(operation: BulkOperation) -> None:
    """Print what became of an operation. Raises Exit where somebody cancelled it."""
    print_line(f"{operation.done:,} {_DONE[operation.kind]}{_how(operation)}")
    for why, count in operation.skipped.items():
        print_note(f"{count:,} skipped: {_SKIPPED.get(why, why)}")
    if operation.status is BulkStatus.CANCELLED:
        print_note("it was cancelled; the others are left as they were")
        raise typer.Exit(FAILED)


def _is_agreed(backends: Backends, who: Caller, made: BulkOperation, options: Asked) -> bool:
    if options.yes:
        return True
    question = f"{_count(made)} will be {_DONE[made.kind]}{_how(made)}"
    if options.output is Form.JSON or not sys.stdin.isatty():
        cancel_bulk(backends, who, made.id)
        raise typer.BadParameter(f"{question} if you give --yes; nobody can be asked here")
    print_note(question)
    agreed: bool = typer.confirm("Go on?", err=True)
    return agreed


def _count(made: BulkOperation) -> str:
    if made.total == 1 and not made.is_more:
        return f"1 run that is {made.filter['status']}"
    counted = f"more than {made.total:,}" if made.is_more else f"{made.total:,}"
    return f"{counted} runs that are {made.filter['status']}"


def _how(made: BulkOperation) -> str:
    if made.kind is BulkKind.CANCEL:
        return ""
    if made.start == ReplayFrom.START:
        return " from the start: actions that succeeded are repeated too"
    return " from the action that failed"


def _print_none(dropped: BulkOperation, output: Form) -> None:
    if output is Form.JSON:
        print_json(document_of(dropped))
    elif dropped.total == 0:
        print_line(f"there is nothing to {dropped.kind}")
    else:
        print_line("nothing was done")


def _warn_without_timers(backends: Backends) -> None:
    try:
        beating = count_beating(backends.redis, backends.keys, "timers", backends.clock.now())
    except REDIS_ERRORS:
        return
    if not beating:
        print_note("no timers process is up; it begins when one is: knockon run timers")


def _watch(backends: Backends, who: Caller, begun: BulkOperation) -> BulkOperation:
    """Look until the operation ends; an interrupt ends the looking alone."""
    operation = begun
    try:
        with _bar(begun) as show:
            while operation.status in GOING:
                threading.Event().wait(POLL_S)
                operation = _look(backends, who, begun.id)
                show(operation)
    except KeyboardInterrupt as error:
        print_note(f"it goes on; see how far: knockon bulk show {begun.id}{_in(who)}")
        print_note(f"end it: knockon bulk cancel {begun.id}{_in(who)}")
        raise typer.Exit(INTERRUPTED) from error
    return operation


def _look(backends: Backends, who: Caller, operation_id: str) -> BulkOperation:
    with backends.database.read() as conn:
        return show_bulk(conn, who.workspace_id, operation_id)


def _in(who: Caller) -> str:
    return f" --workspace {who.workspace_id}"


class Show(Protocol):
    """What shows how far an operation has come."""

    def __call__(self, operation: BulkOperation, /) -> Any:
        """Show it."""
        ...


@contextmanager
def _bar(begun: BulkOperation) -> Iterator[Show]:
    """Give what shows progress: a bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _operation: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr)) as progress:
        task = progress.add_task(_DONE[begun.kind], total=None if begun.is_more else begun.total)
        yield lambda operation: progress.update(task, completed=operation.done + operation.passed)
