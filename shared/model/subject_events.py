"""Events that the engine itself tells of subjects: their type, their payload. Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from shared.model.conversation_configs import ConversationStatus
from shared.model.subjects import SubjectRow, data

SOURCE: Final = "knockon"
STATUS_EVENTS: Final = MappingProxyType(
    {
        ConversationStatus.RESOLVED.value: "conversation.resolved",
        ConversationStatus.OPEN.value: "conversation.opened",
    }
)


def update_event(type_: str, changed: Mapping[str, Any]) -> str:
    """Name the event of a change; a conversation that becomes open or resolved has one of its own."""
    status = changed.get("status") if type_ == "conversation" else None
    named = STATUS_EVENTS.get(status) if isinstance(status, str) else None
    return named or f"{type_}.updated"


def payload_of(row: SubjectRow) -> dict[str, Any]:
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
