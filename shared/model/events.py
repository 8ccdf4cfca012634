"""Events: what a publisher puts on the stream, and what the engine makes of it.

`decode_entry` is the only door for what comes in; `encode_fields` writes what goes out. Every limit and the
treatment of texts that no database can hold are in `json_limits` and `event_fields`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, TypeGuard

import orjson

from shared.errors import BadEvent
from shared.model.event_fields import (
    MAX_ID,
    MAX_SOURCE,
    format_instant,
    parse_instant,
    read_entry_id,
    read_occurred_at,
    read_text,
    read_type,
    read_workspace_id,
)
from shared.model.json_limits import clean_text, clean_tree, read_object
from shared.model.stamps import Stamp, format_stamp, parse_stamp

MAX_ENTRY_BYTES: Final = 262_144
MAX_CONTEXT_DEPTH: Final = 1000

_AUTOMATION: Final = "automationId"
_CONTEXT_IDS: Final = (_AUTOMATION, "runId", "rootRunId")
_CONTEXT_KEYS: Final = frozenset({*_CONTEXT_IDS, "depth", "stamp"})


@dataclass(frozen=True, slots=True)
class Context:
    """Which run emitted an event, how deep in its chain, and the stamp of the write that it tells of.

    A run that nothing but a rule of ours started has no automation.
    """

    automation_id: str | None
    run_id: str
    root_run_id: str
    depth: int
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event that is not on the stream yet. `written` is the stamp of a change that no run has made."""

    type: str
    workspace_id: str
    payload: Mapping[str, Any]
    id: str | None = None
    occurred_at: datetime | None = None
    context: Context | None = None
    source: str | None = None
    written: Stamp | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the stream, checked. `sanitized`: some text in it had to be mended.

    `written` is the stamp of the change that it tells of, where a person made it and no run.
    """

    entry_id: str
    type: str
    workspace_id: str
    payload: Mapping[str, Any]
    id: str | None
    occurred_at: datetime
    context: Context | None
    source: str | None
    sanitized: bool
    written: Stamp | None = None

    @property
    def stamp(self) -> Stamp:
        """The entry id as numbers, which sort in stream order."""
        return parse_stamp(self.entry_id)

    @property
    def write_stamp(self) -> Stamp:
        """When what it tells of was written: the stamp it carries, else its own."""
        carried = self.context.stamp if self.context else self.written
        return carried or self.stamp

    @property
    def depth(self) -> int:
        """How many automations stand between it and what happened outside."""
        return self.context.depth if self.context else 0

    @property
    def key(self) -> str:
        """What makes two publishes one event inside a workspace: the publisher's id, else the entry."""
        if self.id is None:
            return f"entry:{self.entry_id}"
        if self.source is None:
            return f"id:{self.id}"
        return f"s:{self.source.replace('%', '%25').replace('|', '%7C')}|{self.id}"

    @property
    def hash(self) -> str:
        """SHA-256 over type and payload, whatever the order of keys: tells a repeat from a conflict."""
        payload = orjson.dumps(self.payload, option=orjson.OPT_SORT_KEYS)
        return sha256(self.type.encode() + b"\n" + payload).hexdigest()


def decode_entry(entry_id: str, fields: Mapping[bytes, bytes]) -> Event:
    """Make an event of a raw stream entry. Raises BadEvent with the field at fault, and nothing else.

    Empty optional fields count as missing, fields of other names are left alone.
    """
    if sum(map(len, fields)) + sum(map(len, fields.values())) > MAX_ENTRY_BYTES:
        raise BadEvent("entry", f"is larger than {MAX_ENTRY_BYTES // 1024} KiB")
    stamp = read_entry_id(entry_id)
    type_ = read_type(fields)
    workspace_id = read_workspace_id(fields)
    raw_payload = fields.get(b"payload")
    if raw_payload is None:
        raise BadEvent("payload", "is missing")
    payload = read_object("payload", raw_payload)
    if type_ == "message.created":
        _require_conversation(payload.value)
    given_id = read_text(fields, "id", MAX_ID)
    given_source = read_text(fields, "source", MAX_SOURCE)
    id_ = clean_text(given_id) if given_id else None
    source = clean_text(given_source) if given_source else None
    context, written = _read_context(fields.get(b"context"))
    return Event(
        entry_id=entry_id,
        type=type_,
        workspace_id=workspace_id,
        payload=payload.value,
        id=id_,
        occurred_at=read_occurred_at(fields, stamp),
        context=context,
        source=source,
        sanitized=payload.sanitized or id_ != given_id or source != given_source,
        written=written,
    )


def encode_fields(draft: EventDraft) -> dict[str, str]:
    """Write the fields for XADD. Raises BadEvent for a payload that is not JSON, or too large."""
    fields = {
        "type": draft.type,
        "workspaceId": draft.workspace_id,
        "payload": _dump_payload(draft.payload),
        "id": draft.id or "",
        "occurredAt": format_instant(draft.occurred_at) if draft.occurred_at else "",
        "context": _dump_context(_context_to_json(draft.context, draft.written)),
        "source": draft.source or "",
    }
    given = {name: value for name, value in fields.items() if value}
    if (
        sum(len(name) + len(value.encode(errors="replace")) for name, value in given.items())
        > MAX_ENTRY_BYTES
    ):
        raise BadEvent("entry", f"is larger than {MAX_ENTRY_BYTES // 1024} KiB")
    return given


def flatten(event: Event) -> dict[str, Any]:
    """Give what conditions and templates see: `type`, `payload`, and each key of the payload at the top.

    A payload's own key named `type` or `payload` stands in front of the event's.
    """
    return {"type": event.type, "payload": event.payload, **event.payload}


def id_text(value: object) -> str | None:
    """Read an id in a payload: a text that is not empty, or a whole number as its digits; else None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def event_to_json(event: Event) -> dict[str, Any]:
    """Give the whole envelope in JSON types, as it is kept beside a run."""
    return {
        "entryId": event.entry_id,
        "type": event.type,
        "workspaceId": event.workspace_id,
        "payload": event.payload,
        "id": event.id,
        "occurredAt": format_instant(event.occurred_at),
        "context": _context_to_json(event.context, event.written),
        "source": event.source,
        "sanitized": event.sanitized,
    }


def event_from_json(envelope: Mapping[str, Any]) -> Event:
    """Read back what `event_to_json` wrote."""
    context, written = _check_context(envelope["context"])
    return Event(
        entry_id=envelope["entryId"],
        type=envelope["type"],
        workspace_id=envelope["workspaceId"],
        payload=envelope["payload"],
        id=envelope["id"],
        occurred_at=parse_instant(envelope["occurredAt"]),
        context=context,
        source=envelope["source"],
        sanitized=envelope["sanitized"],
        written=written,
    )


def _require_conversation(payload: Mapping[str, Any]) -> None:
    conversation = payload.get("conversation")
    if not isinstance(conversation, dict) or conversation.get("id") in (None, ""):
        raise BadEvent("payload", "a message needs its conversation.id")


def _read_context(raw: bytes | None) -> tuple[Context | None, Stamp | None]:
    if not raw:
        return None, None
    context = read_object("context", raw)
    if context.sanitized:
        raise BadEvent("context", "holds text that cannot be stored")
    return _check_context(context.value)


def _check_context(found: Mapping[str, Any] | None) -> tuple[Context | None, Stamp | None]:
    """Give the context of a run, or else the stamp alone of a change that no run has made."""
    if found is None:
        return None, None
    if unknown := found.keys() - _CONTEXT_KEYS:
        raise BadEvent("context", f"has unknown keys: {', '.join(sorted(unknown))[:100]}")
    stamp = _check_stamp(found.get("stamp"))
    if stamp is not None and found.keys() == {"stamp"}:
        return None, stamp
    for name in _CONTEXT_IDS:
        has_none = name == _AUTOMATION and found.get(name, "") is None
        if not has_none and not _is_id(found.get(name)):
            raise BadEvent("context", f"{name} must be a text of 1 to {MAX_ID} printable characters")
    depth = found.get("depth")
    if type(depth) is not int or not 0 <= depth <= MAX_CONTEXT_DEPTH:
        raise BadEvent("context", f"depth must be an integer from 0 to {MAX_CONTEXT_DEPTH}")
    return Context(found[_AUTOMATION], found["runId"], found["rootRunId"], depth, stamp), None


def _check_stamp(found: object) -> Stamp | None:
    try:
        return None if found is None else parse_stamp(str(found))
    except ValueError as error:
        raise BadEvent("context", f"stamp {error}") from error


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID and value.isprintable()


def _context_to_json(context: Context | None, written: Stamp | None) -> dict[str, Any] | None:
    if context is None:
        return None if written is None else {"stamp": format_stamp(written)}
    known: dict[str, Any] = {
        _AUTOMATION: context.automation_id,
        "runId": context.run_id,
        "rootRunId": context.root_run_id,
        "depth": context.depth,
    }
    return known if context.stamp is None else {**known, "stamp": format_stamp(context.stamp)}


def _dump_context(context: Mapping[str, Any] | None) -> str:
    return orjson.dumps(context).decode() if context else ""


def _dump_payload(payload: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(payload).decode()
    except TypeError:
        return _dump_cleaned(payload)


def _dump_cleaned(payload: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(clean_tree(payload)).decode()
    except (TypeError, RecursionError) as error:
        raise BadEvent("payload", f"is not JSON: {error}") from error
