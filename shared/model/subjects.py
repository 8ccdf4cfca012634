"""Subjects: the read model of what other services own, kept from their events. Pure.

A subject's fields are the names one level below the type's own name: for a record the keys of `properties`,
for a conversation or a contact the keys of that object, for a page the keys of the payload, for an own type
the keys of `subject.state`. So `data(row)` of a record is laid under `properties`, that of a conversation
under `conversation`: conditions read `properties.status` and `conversation.status`, and an action that
updates either one sets the field `status`. A nested value (`customAttributes`, `labels`) is one field and is
replaced as a whole.

Each field keeps its last 20 writes (`field_writes`); the newest is its value. A deletion ends a life of the
subject: what is written later begins another one, which has none of the fields of the one before. Merging is
idempotent, and the order in which writes arrive does not matter, as long as no more than 20 are in play.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from shared.model.events import Event, id_text
from shared.model.field_writes import KEPT, FieldWrite, insert_write
from shared.model.stamps import Stamp
from shared.rules.values import is_same_json

DATABASE_FIELD: Final = "@databaseId"  # a record's database, kept beside its properties

Fields = Mapping[str, tuple[FieldWrite, ...]]

NOT_FIELDS_OF_A_PAGE: Final = frozenset({"pageId", "before", "changedProperties"})
_LONGEST_TYPE: Final = 100
_LONGEST_ID: Final = 200


@dataclass(frozen=True, slots=True)
class SubjectRef:
    """Which subject, inside its workspace."""

    type: str
    id: str


@dataclass(frozen=True, slots=True)
class SubjectWrite:
    """New values for some fields. `event_key` is that of the event that tells of them, sent or yet to be."""

    workspace_id: str
    type: str
    id: str
    stamp: Stamp
    event_key: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SubjectDelete:
    """The subject is gone, until something newer is written to it."""

    workspace_id: str
    type: str
    id: str
    stamp: Stamp
    event_key: str


@dataclass(frozen=True, slots=True, order=True)
class Touch:
    """One write or delete that a row remembers; `names` are the delayed automations that its event named."""

    stamp: Stamp
    event_key: str
    deletes: bool
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """A subject: the last writes of each field, the last writes and deletes of the whole; oldest first.

    `touches` are the last 20, and before them the newest older deletion, if there was one.
    """

    workspace_id: str
    type: str
    id: str
    fields: Fields
    touches: tuple[Touch, ...]

    @property
    def newest(self) -> Stamp:
        """The stamp of the newest write or delete."""
        return self.touches[-1].stamp

    @property
    def deleted(self) -> Stamp | None:
        """When it was deleted; None while it lives."""
        return self.newest if self.touches[-1].deletes else None

    @property
    def database_id(self) -> str | None:
        """The database of a record, if an event has told it."""
        found: str | None = _values(self).get(DATABASE_FIELD)
        return found

    @property
    def born_after(self) -> Stamp | None:
        """The deletion that ended the life before the one that is shown; None if this is the first."""
        return next((touch.stamp for touch in reversed(self.touches[:-1]) if touch.deletes), None)


def subject_of(event: Event) -> SubjectRef | None:
    """Name the subject that an event is about; None if it is about none."""
    found = _locate(event)
    return found[0] if found else None


def project(event: Event) -> SubjectWrite | SubjectDelete | None:
    """Say what an event changes on its subject; None if it is about none.

    Events of records, pages, conversations and contacts change theirs, `form.submitted` the record,
    `message.created` the conversation (but not by the message's fields), any other type what its
    `payload.subject` names with `type`, `id` and `state`; a state that is not an object is the field `state`.
    `<noun>.deleted` deletes a subject of that very type.
    """
    found = _locate(event)
    if found is None:
        return None
    ref, fields = found
    if event.type == f"{ref.type}.deleted":
        return SubjectDelete(event.workspace_id, ref.type, ref.id, event.write_stamp, event.key)
    return SubjectWrite(event.workspace_id, ref.type, ref.id, event.write_stamp, event.key, fields)


def merge(row: SubjectRow | None, write: SubjectWrite | SubjectDelete) -> SubjectRow:
    """Lay a write into the row of its subject; the very same row comes back if it is known already.

    Of an event that was published twice, the earlier publish counts, whichever comes first.
    """
    merged = row or SubjectRow(write.workspace_id, write.type, write.id, {}, ())
    known = next((touch for touch in merged.touches if touch.event_key == write.event_key), None)
    if known is not None:
        if known.stamp <= write.stamp:
            return merged
        merged = _without(merged, known)
    touch = Touch(write.stamp, write.event_key, isinstance(write, SubjectDelete))
    touches = _kept((*merged.touches, touch))
    if isinstance(write, SubjectDelete):
        return replace(merged, touches=touches)
    ends = [known.stamp for known in touches if known.deletes]
    fields = {
        **merged.fields,
        **{
            name: insert_write(merged.fields.get(name, ()), (write.stamp, new), ends)
            for name, new in write.fields.items()
        },
    }
    return replace(merged, fields=fields, touches=touches)


def data(row: SubjectRow) -> dict[str, Any]:
    """Give the current value of each field. A deleted subject keeps its last ones until it is made again."""
    return {name: value for name, value in _values(row).items() if name != DATABASE_FIELD}


def changed_fields(row: SubjectRow, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Give those of `fields` that would change the row; values are equal as in JSON, where true is not 1."""
    before = data(row)
    return {
        name: value
        for name, value in fields.items()
        if name not in before or not is_same_json(before[name], value)
    }


def is_stale(row: SubjectRow, name: str, since: Stamp, own: Collection[str]) -> bool:
    """Tell whether somebody else changed a field after `since`; `own` are the event keys of one's own writes.

    A newer write of an equal value is no change; one whose predecessor is no longer known is.
    """
    keys = {touch.stamp: touch.event_key for touch in row.touches}
    writes = row.fields.get(name, ())
    pairs = pairwise((((-1, -1), None), *writes))
    return any(
        stamp > since and keys.get(stamp) not in own and (before == (-1, -1) or not is_same_json(new, old))
        for (before, old), (stamp, new) in pairs
    )


def local_stamp(now_ms: int, row: SubjectRow | None) -> Stamp:
    """Give the stamp of a write that has no stream entry: now, but later than all that the row knows."""
    if row is None:
        return now_ms, 0
    ms, seq = row.newest
    return max((now_ms, 0), (ms, seq + 1))


def _locate(event: Event) -> tuple[SubjectRef, Mapping[str, Any]] | None:
    payload = event.payload
    noun, _, verb = event.type.partition(".")
    match noun, verb:
        case ("record", _) | ("form", "submitted"):
            return _record(payload)
        case ("page", _):
            fields = {key: value for key, value in payload.items() if key not in NOT_FIELDS_OF_A_PAGE}
            return _located("page", payload.get("pageId"), fields)
        case ("message", "created"):
            return _object("conversation", payload)
        case ("conversation" | "contact", _):
            return _object(noun, payload)
        case _:
            return _own(payload)


def _record(payload: Mapping[str, Any]) -> tuple[SubjectRef, Mapping[str, Any]] | None:
    properties = _mapping(payload.get("properties"))
    database_id = id_text(payload.get("databaseId"))
    known = {} if database_id is None else {DATABASE_FIELD: database_id}
    return _located("record", payload.get("recordId"), {**properties, **known})


def _object(noun: str, payload: Mapping[str, Any]) -> tuple[SubjectRef, Mapping[str, Any]] | None:
    found = _mapping(payload.get(noun))
    return _located(noun, found.get("id"), {key: value for key, value in found.items() if key != "id"})


def _own(payload: Mapping[str, Any]) -> tuple[SubjectRef, Mapping[str, Any]] | None:
    subject = _mapping(payload.get("subject"))
    if "state" not in subject:
        return _located(subject.get("type"), subject.get("id"), {})
    state = subject["state"]
    return _located(
        subject.get("type"), subject.get("id"), state if isinstance(state, Mapping) else {"state": state}
    )


def _located(
    type_: object, given_id: object, fields: Mapping[str, Any]
) -> tuple[SubjectRef, Mapping[str, Any]] | None:
    id_ = id_text(given_id)
    if id_ is None or len(id_) > _LONGEST_ID:
        return None
    if not (isinstance(type_, str) and 0 < len(type_) <= _LONGEST_TYPE):
        return None
    return SubjectRef(type_, id_), fields


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _values(row: SubjectRow) -> dict[str, Any]:
    born_after = row.born_after
    return {
        name: writes[-1][1]
        for name, writes in row.fields.items()
        if born_after is None or writes[-1][0] > born_after
    }


def _kept(touches: Iterable[Touch]) -> tuple[Touch, ...]:
    """Keep the last 20, and the newest older deletion, so that no field of an earlier life comes back."""
    ordered = sorted(touches)
    last_deletion = [touch for touch in ordered[:-KEPT] if touch.deletes][-1:]
    return (*last_deletion, *ordered[-KEPT:])


def _without(row: SubjectRow, touch: Touch) -> SubjectRow:
    remaining = {
        name: tuple(write for write in writes if write[0] != touch.stamp)
        for name, writes in row.fields.items()
    }
    fields = {name: writes for name, writes in remaining.items() if writes}
    return replace(row, fields=fields, touches=tuple(known for known in row.touches if known != touch))
