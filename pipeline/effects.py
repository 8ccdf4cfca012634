"""Changes to our own tables, applied in the transaction of the checkpoint that tells of them.

Hence exactly once.
"""

from collections.abc import Mapping
from typing import Any, Final

from pipeline.book import Book, SubjectKey, Telling
from pipeline.talking import comment, leave_mark, say
from pipeline.verdicts import Record
from shared.db.people import Notice
from shared.errors import ActionError, FatalError
from shared.ids import new_id
from shared.model.effects import (
    ChangeLabels,
    Comment,
    CreateSubject,
    Effect,
    Emit,
    Notify,
    Say,
    UpdateSubject,
)
from shared.model.events import Event, event_from_json
from shared.model.runs import ActionDone, ClaimedRun
from shared.model.stamps import Stamp
from shared.model.subject_events import SOURCE, payload_of
from shared.model.subjects import DATABASE_FIELD, SubjectRow, changed_fields, data, is_stale
from shared.time.clock import epoch_ms

ALREADY_EXISTS: Final = "ALREADY_EXISTS"
CONVERSATION: Final = "conversation"
LABELS: Final = "labels"


def made_subjects(record: Record) -> list[SubjectKey]:
    """Name the subjects that a record's effects make, so that their places can be locked first."""
    return [
        (record.run.workspace_id, effect.subject_type, effect.subject_id)
        for effect in _effects(record)
        if isinstance(effect, CreateSubject)
    ]


def touched_subjects(record: Record) -> list[SubjectKey]:
    """Name the subjects that must be there for a record's effects, so that they can be locked first."""
    refs = [_touched(effect) for effect in _effects(record)]
    if record.done is not None and record.mark is not None:
        refs.append((CONVERSATION, record.mark.conversation_id))
    return [(record.run.workspace_id, *ref) for ref in refs if ref is not None]


def apply_effects(record: Record, done: ActionDone, book: Book) -> Mapping[str, Any]:
    """Enter an action's effects into the book and give its output with what they came to.

    Raises FatalError when one is not possible any more; then none of them is in the book.
    """
    before = book.copy() if len(done.effects) > 1 or record.mark else book
    output = dict(done.output)
    try:
        for effect in done.effects:
            output |= _apply(effect, record, book)
        if record.mark is not None:
            output |= leave_mark(record.mark, record, book)
    except ActionError:
        book.restore(before)
        raise
    return output


def _effects(record: Record) -> tuple[Effect, ...]:
    return record.done.effects if record.done else ()


def _touched(effect: Effect) -> tuple[str, str] | None:
    match effect:
        case UpdateSubject() | Comment():
            return effect.subject_type, effect.subject_id
        case ChangeLabels() | Say():
            return CONVERSATION, effect.conversation_id
        case CreateSubject() | Notify() | Emit():
            return None


def _apply(effect: Effect, record: Record, book: Book) -> Mapping[str, Any]:
    match effect:
        case UpdateSubject():
            return _update(effect, record, book)
        case CreateSubject():
            return _create(effect, record, book)
        case ChangeLabels():
            return _change_labels(effect, record, book)
        case Say():
            return say(effect, record, book)
        case Comment():
            return comment(effect, record, book)
        case Notify(title=title, body=body, roles=roles):
            run = record.run
            book.notices.append(
                Notice(run.workspace_id, roles, title, body, "automation_run", run.claim.run_id)
            )
            return {}
        case Emit(event_type=event_type, payload=payload):
            event_id = new_id()
            book.tell(record, Telling(event_type, payload, event_id))
            return {"event_id": event_id}


def _update(effect: UpdateSubject, record: Record, book: Book) -> Mapping[str, Any]:
    key = (record.run.workspace_id, effect.subject_type, effect.subject_id)
    row = book.living(key)
    was_looked_at = record.mark is not None  # under the lock that is held
    stale = [] if effect.force or was_looked_at else _stale(effect, record, row)
    new = {name: value for name, value in changed_fields(row, effect.fields).items() if name not in stale}
    return {"stale": stale, **_change(key, new, effect.event_type, record, book)}


def _change_labels(effect: ChangeLabels, record: Record, book: Book) -> Mapping[str, Any]:
    key = (record.run.workspace_id, CONVERSATION, effect.conversation_id)
    found = data(book.living(key)).get(LABELS)
    before = found if isinstance(found, list) else []
    kept = [label for label in before if label not in effect.remove]
    after = [*kept, *dict.fromkeys(label for label in effect.add if label not in kept)]
    new = {} if after == before else {LABELS: after}
    return {LABELS: after, **_change(key, new, "conversation.updated", record, book)}


def _change(
    key: SubjectKey, new: Mapping[str, Any], event_type: str, record: Record, book: Book
) -> Mapping[str, Any]:
    """Write what is new into a subject that lives and tell of it; nothing new is told of by nothing."""
    if not new:
        return {"changed": []}
    before = data(book.living(key))
    event_id = new_id()
    written = book.written(key, event_id, new)
    payload = {
        **payload_of(written),
        "changedProperties": sorted(new),
        "before": {name: before.get(name) for name in new},
    }
    book.tell(record, Telling(event_type, payload, event_id, written.newest))
    book.enter(key, written)
    return {"changed": sorted(new), "event_id": event_id}


def _stale(effect: UpdateSubject, record: Record, row: SubjectRow) -> list[str]:
    since = _since(record.run, row)
    own = {f"s:{SOURCE}|{event_id}" for event_id in record.own_events}
    return [name for name in effect.fields if is_stale(row, name, since, own)]


def _since(run: ClaimedRun, row: SubjectRow) -> Stamp:
    """Give the stamp of what the run was decided upon: what others wrote after it is not to be undone.

    A run that waited was decided upon its subject as it was when it fired, and upon other subjects no longer
    by its event; of those it counts what was written since by the clock of the timers.
    """
    look = run.look
    if look is None:
        event: Event = event_from_json(run.event)
        return max(event.stamp, event.write_stamp)
    return look.newest if look.subject == (row.type, row.id) else (epoch_ms(look.at), 0)


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
    written = book.written(key, event_id, fields)
    book.tell(record, Telling(effect.event_type, payload_of(written), event_id, written.newest))
    book.enter(key, written)
    return {"event_id": event_id}
