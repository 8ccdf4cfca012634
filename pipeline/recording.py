"""A batch of records becomes rows: one transaction, a few set statements, locks in one order."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from pipeline.book import Book
from pipeline.effects import apply_effects, made_subjects, touched_subjects
from pipeline.settling import NO_SETTLERS, AlreadySaid, Settled, Settlers, StandDown, bars_of, settle_rows
from pipeline.verdicts import Record, Standing, Verdict
from shared.db.claims import Held, lock_claims
from shared.db.comments import insert_comments
from shared.db.dead_letters import DeadLetter, DeadLetterKind, record_dead_letters
from shared.db.endings import end_events
from shared.db.history import Attempt, RunLog, insert_actions, insert_attempts, insert_logs
from shared.db.messages import insert_messages
from shared.db.outbox import OutboxEntry, insert_outbox
from shared.db.people import insert_notices
from shared.db.settle import finish_runs, release_runs, reset_failures, retry_runs
from shared.db.sheet import Sheet
from shared.db.subjects import SubjectKey, lock_places, lock_subjects, save_subjects
from shared.errors import ActionError
from shared.faults import FaultPoint, passed
from shared.model.executed import EndedRun
from shared.model.moves import RunStatus
from shared.model.runs import (
    ActionDone,
    Claim,
    DeadLettered,
    Failed,
    HandedBack,
    Outcome,
    Retried,
    Succeeded,
)
from shared.model.subjects import SubjectRow

Bar = StandDown | AlreadySaid


@dataclass(slots=True)
class Written:
    """What a committed batch came to: a verdict for each record, and what is to be done after the commit."""

    verdicts: list[Verdict] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    outbox: list[OutboxEntry] = field(default_factory=list)
    ended: list[Settled] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def write_batch(
    conn: Connection,
    records: Sequence[Record],
    owner: str,
    now: datetime,
    settlers: Settlers = NO_SETTLERS,
) -> Written:
    """Write records whose claim still stands; the others are FENCED and leave no trace.

    Safe to run again as a whole after a rollback. After a COMMIT whose answer was lost see `journal`.
    """
    held = lock_claims(conn, sorted({record.run.claim for record in records}, key=lambda claim: claim.run_id))
    standing = [record for record in records if _is_held(record, held)]
    book = Book(_lock(conn, standing, now), now)
    bars = bars_of(conn, settlers, [record.run for record in standing if record.done])
    written = Written()
    for record in records:
        verdict, final = _enter(_barred(record, bars), held, book)
        written.verdicts.append(verdict)
        if verdict.standing is not Standing.FENCED:
            written.records.append(final)
    _write_rows(conn, written, book, owner, now)
    written.ended = list(_settled(written.records, bars, book))
    written.counts = settle_rows(conn, settlers, written.ended, now)
    passed(FaultPoint.JOURNAL_BEFORE_COMMIT)
    return written


def _lock(conn: Connection, records: Sequence[Record], now: datetime) -> dict[SubjectKey, SubjectRow]:
    made = {key for record in records for key in made_subjects(record)}
    changed = {key for record in records for key in touched_subjects(record)} - made
    found = lock_places(conn, made, now=now) if made else {}
    return {**found, **lock_subjects(conn, changed)} if changed else found


def _is_held(record: Record, held: Mapping[str, Held]) -> bool:
    found = held.get(record.run.claim.run_id)
    return found is not None and found.claim == record.run.claim


def _barred(record: Record, bars: Mapping[str, Bar]) -> Record:
    """Give the record to enter instead of one whose act is not to be."""
    bar = bars.get(record.run.claim.run_id) if record.done is not None else None
    match bar:
        case None:
            return record
        case StandDown():
            assert record.stood_down is not None
            return record.stood_down(bar)
        case AlreadySaid():
            assert record.done is not None
            return replace(record, done=replace(record.done, effects=()), mark=None)


def _enter(record: Record, held: Mapping[str, Held], book: Book) -> tuple[Verdict, Record]:
    if not _is_held(record, held):
        return Verdict(Standing.FENCED), record
    stop_reason = held[record.run.claim.run_id].stop_reason
    if record.done is None:
        return Verdict(Standing.WRITTEN, stop_reason=stop_reason), record
    try:
        output = apply_effects(record, record.done, book)
    except ActionError as error:
        assert record.refused is not None
        return Verdict(Standing.ENDED), record.refused(error)
    if output == record.done.output:
        return Verdict(Standing.WRITTEN, output, stop_reason), record
    final = replace(record, done=replace(record.done, output=output))
    if isinstance(final.outcome, Succeeded):
        final = replace(final, outcome=_with_output(final.outcome, record.done, output))
    return Verdict(Standing.WRITTEN, output, stop_reason), final


def _with_output(outcome: Succeeded, done: ActionDone, output: Mapping[str, Any]) -> Succeeded:
    actions = {**outcome.output.get("actions", {}), str(done.position): output}
    return Succeeded(outcome.skipped, {"actions": actions})


def _write_rows(conn: Connection, written: Written, book: Book, owner: str, now: datetime) -> None:
    records = written.records
    if book.changed:
        save_subjects(conn, [book.changed[key] for key in sorted(book.changed)], now=now)
    sheet = Sheet()
    insert_messages(sheet, book.messages)
    insert_comments(sheet, book.comments, now=now)
    ended = [(record, record.outcome) for record in records if record.outcome is not None]
    _move(sheet, ended, now)
    insert_actions(sheet, ((record.run.claim, record.done) for record in records if record.done))
    going_on = [record.run for record in records if record.done and not _is_terminal(record.outcome)]
    reset_failures(sheet, (run.claim for run in going_on if run.failures or run.crash_count))
    insert_attempts(sheet, (_attempt(record, outcome, owner, now) for record, outcome in ended))
    insert_logs(sheet, _logs(records))
    written.outbox = [*book.outbox, *end_events(_ends(ended, now), now)]
    insert_outbox(sheet, written.outbox, now=now)
    sheet.write(conn)
    insert_notices(conn, book.notices, now=now)
    dead = _dead_letters(ended, now)
    if dead:
        written.outbox.extend(record_dead_letters(conn, dead, now=now))


def _move(sheet: Sheet, ended: Iterable[tuple[Record, Outcome]], now: datetime) -> None:
    endings: list[tuple[Claim, Succeeded | Failed | DeadLettered]] = []
    retries: list[tuple[Claim, Retried]] = []
    released: list[tuple[Claim, HandedBack]] = []
    for record, outcome in ended:
        claim = record.run.claim
        match outcome:
            case Succeeded() | Failed() | DeadLettered():
                endings.append((claim, outcome))
            case Retried():
                retries.append((claim, outcome))
            case HandedBack():
                released.append((claim, outcome))
    finish_runs(sheet, endings, now=now)
    retry_runs(sheet, retries, now=now)
    release_runs(sheet, released, now=now)


def _settled(records: Iterable[Record], bars: Mapping[str, Bar], book: Book) -> Iterable[Settled]:
    """Tell how attempts ended, each with the last message that its act has left."""
    left = {message.run_id: message for message in book.messages}
    for record in records:
        if record.outcome is not None:
            run_id = record.run.claim.run_id
            bar = bars.get(run_id)
            said = bar.message if isinstance(bar, AlreadySaid) else left.get(run_id)
            yield Settled(record.run, record.outcome, said if record.done else None)


def _is_terminal(outcome: Outcome | None) -> bool:
    return isinstance(outcome, Succeeded | Failed | DeadLettered)


def _attempt(record: Record, outcome: Outcome, owner: str, now: datetime) -> Attempt:
    run = record.run
    match outcome:
        case Succeeded(skipped=None):
            return Attempt(run.claim, "succeeded", None, owner, run.started_at, now)
        case Succeeded():
            return Attempt(run.claim, "skipped", None, owner, run.started_at, now)
        case HandedBack():
            return Attempt(run.claim, "handed_back", None, owner, run.started_at, now)
        case Failed(error=error) | Retried(error=error) | DeadLettered(error=error):
            return Attempt(run.claim, "failed", error, owner, run.started_at, now)


def _logs(records: Iterable[Record]) -> Iterable[RunLog]:
    for record in records:
        run = record.run
        for line in record.logs:
            yield RunLog(run.workspace_id, run.automation_id, run.claim.run_id, line)


def _ends(ended: Iterable[tuple[Record, Outcome]], now: datetime) -> Iterable[EndedRun]:
    """Give the ends that are no dead letters; those are told of with their notices."""
    for record, outcome in ended:
        match outcome:
            case Succeeded():
                yield EndedRun.of(record.run, RunStatus.SUCCEEDED, None, now)
            case Failed(error=error):
                yield EndedRun.of(record.run, RunStatus.FAILED, error, now)


def _dead_letters(ended: Iterable[tuple[Record, Outcome]], now: datetime) -> list[DeadLetter]:
    return [
        DeadLetter.of(record.run, record.automation_name, outcome.error, DeadLetterKind.EXHAUSTED, now)
        for record, outcome in ended
        if isinstance(outcome, DeadLettered)
    ]
