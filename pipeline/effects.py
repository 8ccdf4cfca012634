"""Changes to our own tables, applied in the transaction of the checkpoint that tells of them.

Hence exactly once.

A book is opened for a batch over the locked subjects. Applying an effect only changes the book; a refusal
raises before anything of that action is in it. What the book holds at the end is written as sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pipeline.verdicts import Record
from shared.db.outbox import OutboxEntry
from shared.db.people import Notice
from shared.errors import ActionError, BadEvent, FatalError
from shared.ids import new_id
from shared.model.effects import CreateSubject, Effect, Emit, Notify, UpdateSubject
from shared.model.events import Context, Event, EventDraft, encode_fields, event_from_json
from shared.model.runs import ActionDone
from shared.model.stamps import Stamp
from shared.model.subjects import (
    DATABASE_FIELD,
    SubjectRow,
    SubjectWrite,
    changed_fields,
    data,
    is_stale,
    local_stamp,
    merge,
)
from shared.time.clock import epoch_ms

SOURCE: Final = "knockon"
REFERENCE_GONE: Final = "REFERENCE_GONE"
ALREADY_EXISTS: Final = "ALREADY_EXISTS"
EVENT_REFUSED: Final = "EVENT_REFUSED"

SubjectKey = tuple[str, str, str]


@dataclass(slots=True)
class Book:
    """What a batch of effects comes to. `subjects` are the locked rows; `changed` are those to be written."""

    subjects: dict[SubjectKey, SubjectRow]
    now: datetime
    changed: dict[SubjectKey, SubjectRow] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    outbox: list[OutboxEntry] = field(default_factory=list)

    def copy(self) -> "Book":
        """Give the book as it stands, for `restore`."""
        return Book(dict(self.subjects), self.now, dict(self.changed), list(self.notices), list(self.outbox))

    def restore(self, before: "Book") -> None:
        """Take back what was entered since the copy."""
        self.subjects, self.changed = before.subjects, before.changed
        self.notices, self.outbox = before.notices, before.outbox


def subjects_of(record: Record, kind: type[UpdateSubject | CreateSubject]) -> list[SubjectKey]:
    """Name the subjects that a record's effects change, or make, so that they can be locked first."""
    effects = record.done.effects if record.done else ()
    return [
        (record.run.workspace_id, effect.subject_type, effect.subject_id)
        for effect in effects
        if isinstance(effect, kind)
    ]


def apply_effects(record: Record, done: ActionDone, book: Book) -> Mapping[str, Any]:
    """Enter an action's effects into the book and give its output with what they came to.

    Raises FatalError when one is not possible any more; then none of them is in the book.
    """
    before = book.copy() if len(done.effects) > 1 else book
    output = dict(done.output)
    for effect in done.effects:
        try:
            output |= _apply(effect, record, book)
        except ActionError:
            book.restore(before)
            raise
    return output


def _apply(effect: Effect, record: Record, book: Book) -> Mapping[str, Any]:
    match effect:
        case UpdateSubject():
            return _update(effect, record, book)
        case CreateSubject():
            return _create(effect, record, book)
        case Notify(title=title, body=body, roles=roles):
            run = record.run
            book.notices.append(
                Notice(run.workspace_id, roles, title, body, "automation_run", run.claim.run_id)
            )
            return {}
        case Emit(event_type=event_type, payload=payload):
            entry = _entry(record, book.now, _Telling(event_type, payload, new_id()))
            book.outbox.append(entry)
            return {"event_id": entry.id}


def _update(effect: UpdateSubject, record: Record, book: Book) -> Mapping[str, Any]:
    key = (record.run.workspace_id, effect.subject_type, effect.subject_id)
    row = book.subjects.get(key)
    if row is None or row.deleted is not None:
        raise FatalError(REFERENCE_GONE, f"{effect.subject_type} {effect.subject_id} is not there")
    stale = [] if effect.force else _stale(effect, record, row)
    before = data(row)
    new = {name: value for name, value in changed_fields(row, effect.fields).items() if name not in stale}
    if not new:
        return {"changed": [], "stale": stale}
    event_id = new_id()
    written = merge(row, _write(key, local_stamp(epoch_ms(book.now), row), event_id, new))
    payload = {
        **_payload(written),
        "changedProperties": sorted(new),
        "before": {name: before.get(name) for name in new},
    }
    book.outbox.append(
        _entry(record, book.now, _Telling(effect.event_type, payload, event_id, written.newest))
    )
    book.subjects[key] = book.changed[key] = written
    return {"changed": sorted(new), "stale": stale, "event_id": event_id}


def _stale(effect: UpdateSubject, record: Record, row: SubjectRow) -> list[str]:
    event: Event = event_from_json(record.run.event)
    since = max(event.stamp, event.write_stamp)
    own = {f"s:{SOURCE}|{event_id}" for event_id in record.own_events}
    return [name for name in effect.fields if is_stale(row, name, since, own)]


def _create(effect: CreateSubject, record: Record, book: Book) -> Mapping[str, Any]:
    key = (record.run.workspace_id, effect.subject_type, effect.subject_id)
    row = book.subjects.get(key)
    if row is not None and row.deleted is None:
        if effect.may_exist:
            return {"existed": True}
        raise FatalError(ALREADY_EXISTS, f"{effect.subject_type} {effect.subject_id} is there already")
    event_id = new_id()
    fields = dict(effect.fields)
    if effect.database_id is not None:
        fields[DATABASE_FIELD] = effect.database_id
    written = merge(row, _write(key, local_stamp(epoch_ms(book.now), row), event_id, fields))
    entry = _entry(record, book.now, _Telling(effect.event_type, _payload(written), event_id, written.newest))
    book.outbox.append(entry)
    book.subjects[key] = book.changed[key] = written
    return {"event_id": event_id}


def _write(key: SubjectKey, stamp: Stamp, event_id: str, fields: Mapping[str, Any]) -> SubjectWrite:
    return SubjectWrite(*key, stamp, f"s:{SOURCE}|{event_id}", fields)


def _payload(row: SubjectRow) -> dict[str, Any]:
    """Tell of a subject in the payload conventions of its type."""
    match row.type:
        case "record":
            return {"recordId": row.id, "databaseId": row.database_id, "properties": data(row)}
        case "page":
            return {**data(row), "pageId": row.id}
        case "conversation" | "contact":
            return {row.type: {**data(row), "id": row.id}}
        case _:
            return {"subject": {"type": row.type, "id": row.id, "state": data(row)}}


@dataclass(frozen=True, slots=True)
class _Telling:
    event_type: str
    payload: Mapping[str, Any]
    event_id: str
    stamp: Stamp | None = None


def _entry(record: Record, now: datetime, telling: _Telling) -> OutboxEntry:
    run = record.run
    draft = EventDraft(
        type=telling.event_type,
        workspace_id=run.workspace_id,
        payload=telling.payload,
        id=telling.event_id,
        occurred_at=now,
        context=Context(run.automation_id, run.claim.run_id, run.root_run_id, run.depth + 1, telling.stamp),
        source=SOURCE,
    )
    try:
        fields = encode_fields(draft)
    except BadEvent as error:
        raise FatalError(EVENT_REFUSED, str(error)) from error
    return OutboxEntry(telling.event_id, run.workspace_id, run.claim.run_id, fields)
