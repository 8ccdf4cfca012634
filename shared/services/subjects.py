"""Subjects that other services write by hand: fields are laid in, a subject is deleted, both are told.

A write has no entry on the stream, so it takes a stamp of its own, which the event that tells of it carries
(docs/api.md, "Subjects"). The row and the event are committed together; the event goes out after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.outbox import OutboxEntry, insert_outbox
from shared.db.subjects import SubjectKey, find_subject, lock_places, lock_subjects, save_subjects
from shared.errors import BadEvent, NotFound
from shared.ids import new_id
from shared.model.events import EventDraft, decode_entry, encode_fields
from shared.model.json_limits import clean_tree
from shared.model.stamps import Stamp, format_stamp
from shared.model.subject_events import SOURCE, payload_of, update_event
from shared.model.subjects import (
    DATABASE_FIELD,
    SubjectDelete,
    SubjectRow,
    SubjectWrite,
    changed_fields,
    data,
    local_stamp,
    merge,
    project,
)
from shared.services.backends import Backends, Caller
from shared.services.emitting import try_to_send
from shared.services.references import check_workspace
from shared.services.waiting import waiting_since
from shared.time.clock import epoch_ms

RECORD: Final = "record"


@dataclass(frozen=True, slots=True)
class SubjectFields:
    """What is to be laid into a subject; `database_id` is told of records alone."""

    type: str
    id: str
    fields: Mapping[str, Any]
    database_id: str | None = None


@dataclass(frozen=True, slots=True)
class SubjectSeen:
    """A subject; of a conversation, since when its contact waits for an answer, None if not."""

    row: SubjectRow
    waiting_since: datetime | None


@dataclass(frozen=True, slots=True)
class Put:
    """What a write came to. Without changed fields there is no event, and `event_id` is None."""

    row: SubjectRow
    was_made: bool
    changed: tuple[str, ...]
    event_id: str | None


def get_subject(database: Database, caller: Caller, type_: str, id_: str) -> SubjectSeen:
    """Give a subject that lives. Raises NotFound."""
    with database.read() as conn:
        row = find_subject(conn, caller.workspace_id, type_, id_)
        if row is None or row.deleted is not None:
            raise _no_subject(conn, (caller.workspace_id, type_, id_))
        return SubjectSeen(row, waiting_since(conn, row))


def put_subject(backends: Backends, caller: Caller, wanted: SubjectFields) -> Put:
    """Lay fields into a subject, which is made if it is not there; a second call changes nothing.

    Raises BadEvent with the field at fault for what no event could tell of, NotFound without the workspace.
    """
    now = backends.clock.now()
    fields = _fields_of(wanted)
    key = (caller.workspace_id, wanted.type, wanted.id)

    def work(conn: Connection) -> tuple[Put, list[OutboxEntry]]:
        check_workspace(conn, caller.workspace_id)
        row = lock_places(conn, [key], now=now).get(key)
        lives = row is not None and row.deleted is None
        new = changed_fields(row, fields) if lives and row is not None else fields
        if lives and row is not None and not new:
            return Put(row, was_made=False, changed=(), event_id=None), []
        event_id = new_id()
        stamp = local_stamp(epoch_ms(now), row)
        written = merge(row, SubjectWrite(*key, stamp, _key_of(event_id), new))
        told = {**payload_of(written), **_change(row, new)} if lives else payload_of(written)
        event_type = update_event(wanted.type, new) if lives else f"{wanted.type}.created"
        entry = _entry(EventDraft(event_type, key[0], told, event_id, now, None, SOURCE, stamp))
        _check_tells(entry, stamp, fields)
        save_subjects(conn, [written], now=now)
        insert_outbox(conn, [entry], now=now)
        changed = tuple(sorted(name for name in new if name != DATABASE_FIELD))
        return Put(written, not lives, changed, event_id), [entry]

    done, told = backends.database.transact(work)
    try_to_send(backends, told)
    return done


def delete_subject(backends: Backends, caller: Caller, type_: str, id_: str) -> str:
    """Mark a subject as deleted and tell of it; give the event's id. A second call raises NotFound."""
    now = backends.clock.now()
    key = (caller.workspace_id, type_, id_)

    def work(conn: Connection) -> OutboxEntry:
        row = lock_subjects(conn, [key]).get(key)
        if row is None or row.deleted is not None:
            raise _no_subject(conn, key)
        event_id = new_id()
        stamp = local_stamp(epoch_ms(now), row)
        gone = merge(row, SubjectDelete(*key, stamp, _key_of(event_id)))
        draft = EventDraft(f"{type_}.deleted", key[0], payload_of(row), event_id, now, None, SOURCE, stamp)
        entry = _entry(draft)
        save_subjects(conn, [gone], now=now)
        insert_outbox(conn, [entry], now=now)
        return entry

    entry = backends.database.transact(work)
    try_to_send(backends, [entry])
    return entry.id


def _fields_of(wanted: SubjectFields) -> dict[str, Any]:
    fields: dict[str, Any] = clean_tree(dict(wanted.fields))
    if DATABASE_FIELD in fields:
        raise BadEvent(f"data.{DATABASE_FIELD}", "is not a field; give databaseId beside data")
    if wanted.database_id is None:
        return fields
    if wanted.type != RECORD:
        raise BadEvent("databaseId", "goes with records alone")
    return {**fields, DATABASE_FIELD: wanted.database_id}


def _change(row: SubjectRow | None, new: Mapping[str, Any]) -> dict[str, Any]:
    before = {} if row is None else data(row)
    names = sorted(name for name in new if name != DATABASE_FIELD)
    return {"changedProperties": names, "before": {name: before.get(name) for name in names}}


def _entry(draft: EventDraft) -> OutboxEntry:
    return OutboxEntry(draft.id or "", draft.workspace_id, None, encode_fields(draft))


def _key_of(event_id: str) -> str:
    return f"s:{SOURCE}|{event_id}"


def _check_tells(entry: OutboxEntry, stamp: Stamp, fields: Mapping[str, Any]) -> None:
    """Refuse what the event could not carry, so that whoever reads the stream knows what the row knows."""
    raw = {name.encode(): str(value).encode() for name, value in entry.fields.items()}
    told = project(decode_entry(format_stamp(stamp), raw))
    if not isinstance(told, SubjectWrite):
        raise BadEvent("type", "names no subject that an event can be about")
    lost = sorted(name for name in fields if name not in told.fields)
    if lost:
        raise BadEvent(f"data.{lost[0]}", f"is not a field of a {told.type}")


def _no_subject(conn: Connection, key: SubjectKey) -> NotFound:
    workspace_id, type_, id_ = key
    check_workspace(conn, workspace_id)
    return NotFound(f"there is no {type_} {id_!r} in workspace {workspace_id!r}")
