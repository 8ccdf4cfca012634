"""What a publisher sends over HTTP: our own fields, or a CloudEvent (docs/api.md, Events). Pure.

Everything that the matcher would bury is refused here, with the field at fault.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from shared.errors import BadEvent
from shared.model.event_bodies import Item
from shared.model.event_fields import parse_instant
from shared.model.events import EventDraft, decode_entry, encode_fields
from shared.model.executed import EXECUTED

FIELDS: Final = frozenset({"type", "workspaceId", "payload", "id", "occurredAt", "source"})
PLACE: Final = "1-1"
SPEC_VERSION: Final = "specversion"
SPEC: Final = "1.0"
RESERVED: Final = "is the engine's own; name what happened in your service"
JSON_TYPES: Final = ("application/json", "text/json")


@dataclass(frozen=True, slots=True)
class Published:
    """An event that may go to the stream: its id, and the fields of its entry."""

    id: str
    fields: Mapping[str, str]


def is_cloud_event(value: Mapping[str, Any]) -> bool:
    """Tell whether an object says of itself that it is a CloudEvent."""
    return SPEC_VERSION in value


def read_published(item: Item, workspace_id: str, default_id: str) -> Published:
    """Make what goes to the stream of one object, for this workspace and no other. Raises BadEvent."""
    try:
        plain = _of_cloud_event(item.value) if is_cloud_event(item.value) else item.value
        draft = _draft(plain, workspace_id, default_id)
        fields = encode_fields(draft)
        decode_entry(PLACE, {name.encode(): value.encode() for name, value in fields.items()})
    except BadEvent as error:
        names = CLOUD_NAMES if is_cloud_event(item.value) else {}
        raise BadEvent(item.at(names.get(error.field, error.field)), error.reason) from error
    return Published(draft.id or default_id, fields)


# How our fields are called in a CloudEvent.
CLOUD_NAMES: Final[Mapping[str, str]] = {
    "payload": "data",
    "occurredAt": "time",
    "workspaceId": "workspaceid",
}


def _of_cloud_event(value: Mapping[str, Any]) -> dict[str, Any]:
    """Give our fields of a CloudEvent; extensions other than `workspaceid` are left alone."""
    if value[SPEC_VERSION] != SPEC:
        raise BadEvent(SPEC_VERSION, f"must be {SPEC}")
    for name in ("id", "source", "type"):
        if not isinstance(value.get(name), str) or not value[name]:
            raise BadEvent(name, "must be text that is not empty")
    if "data_base64" in value:
        raise BadEvent("data_base64", "cannot be read; send a JSON object as data")
    kind = value.get("datacontenttype") or JSON_TYPES[0]
    if not isinstance(kind, str) or not _is_json(kind):
        raise BadEvent("datacontenttype", f"must be {JSON_TYPES[0]}")
    given = {ours: value.get(theirs) for ours, theirs in CLOUD_NAMES.items()}
    if given["payload"] is None:
        given["payload"] = {}
    return {**given, "id": value["id"], "source": value["source"], "type": value["type"]}


def _is_json(kind: str) -> bool:
    plain = kind.partition(";")[0].strip().lower()
    return plain in JSON_TYPES or plain.endswith("+json")


def _draft(value: Mapping[str, Any], workspace_id: str, default_id: str) -> EventDraft:
    if unknown := value.keys() - FIELDS:
        raise BadEvent(min(unknown)[:100], f"is unknown; known are {', '.join(sorted(FIELDS))}")
    for name in sorted(FIELDS - {"payload"}):
        if value.get(name) is not None and not isinstance(value[name], str):
            raise BadEvent(name, "must be text")
    if value.get("workspaceId") not in (None, "", workspace_id):
        raise BadEvent("workspaceId", f"is not {workspace_id}, the workspace of the key")
    if value.get("type") == EXECUTED:
        raise BadEvent("type", RESERVED)
    if value.get("payload") is None:
        raise BadEvent("payload", "is missing")
    return EventDraft(
        type=value.get("type") or "",
        workspace_id=workspace_id,
        payload=value["payload"],
        id=value.get("id") or default_id,
        occurred_at=_instant(value.get("occurredAt")),
        source=value.get("source") or None,
    )


def _instant(text: str | None) -> datetime | None:
    try:
        return parse_instant(text) if text else None
    except ValueError as error:
        raise BadEvent("occurredAt", str(error)) from error
