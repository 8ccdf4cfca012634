"""What the OpenAPI document says of the body of `POST /v1/events`."""

from typing import Any, Final

from shared.model.event_bodies import MOST
from shared.model.event_fields import MAX_ID, MAX_SOURCE, MAX_TYPE

TYPE: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$",
    "maxLength": MAX_TYPE,
    "not": {"const": "automation.executed"},
    "examples": ["order.placed"],
}
INSTANT: Final[dict[str, Any]] = {
    "type": "string",
    "format": "date-time",
    "description": "RFC 3339, between the years 1970 and 2200.",
    "examples": ["2026-03-01T09:30:00Z"],
}
EVENT: Final[dict[str, Any]] = {
    "title": "Event",
    "type": "object",
    "additionalProperties": False,
    "required": ["type", "payload"],
    "properties": {
        "type": TYPE,
        "payload": {
            "type": "object",
            "description": "At most 32 levels and 10,000 values; the whole event at most 256 KiB.",
        },
        "workspaceId": {"type": "string", "description": "The key's own workspace, if it is given."},
        "id": {
            "type": "string",
            "maxLength": MAX_ID,
            "description": "Your id of what happened: the same event sent twice starts nothing twice.",
        },
        "occurredAt": INSTANT,
        "source": {"type": "string", "maxLength": MAX_SOURCE},
    },
}
CLOUD_EVENT: Final[dict[str, Any]] = {
    "title": "CloudEvent",
    "type": "object",
    "required": ["specversion", "id", "source", "type"],
    "properties": {
        "specversion": {"const": "1.0"},
        "id": {"type": "string", "minLength": 1, "maxLength": MAX_ID},
        "source": {"type": "string", "minLength": 1, "maxLength": MAX_SOURCE},
        "type": TYPE,
        "time": INSTANT,
        "datacontenttype": {"const": "application/json"},
        "data": {"type": "object"},
        "workspaceid": {"type": "string", "description": "The key's own workspace, if it is given."},
    },
}


def _list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1, "maxItems": MOST}


_EXAMPLE: Final = {"type": "order.placed", "id": "order-7", "payload": {"orderId": 7, "total": 120}}
_CLOUD_EXAMPLE: Final = {
    "specversion": "1.0",
    "id": "order-7",
    "source": "/shop",
    "type": "order.placed",
    "data": {"orderId": 7, "total": 120},
}

REQUEST: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "oneOf": [
                    EVENT,
                    _list_of(EVENT),
                    {
                        "title": "Events",
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["events"],
                        "properties": {"events": _list_of(EVENT)},
                    },
                ]
            },
            "example": _EXAMPLE,
        },
        "application/cloudevents+json": {"schema": CLOUD_EVENT, "example": _CLOUD_EXAMPLE},
        "application/cloudevents-batch+json": {
            "schema": _list_of(CLOUD_EVENT),
            "example": [_CLOUD_EXAMPLE],
        },
    },
}
