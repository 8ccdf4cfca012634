"""Events as lines of JSON, one object a line with the fields of a stream entry, made into drafts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

import orjson

from knockon.client import PIPELINE_SIZE, RESERVED_REASON, RESERVED_TYPE, EventDraft, Publisher
from shared.errors import BadEvent, ConfigError, NotFound
from shared.ids import new_id
from shared.model.event_fields import parse_instant
from shared.model.events import decode_entry
from shared.model.json_limits import read_object

FIELDS: Final = frozenset({"type", "workspaceId", "payload", "id", "occurredAt", "source"})
PLACE: Final = "1-1"
SPARE: Final = 1 + len(FIELDS)  # what stands around the payload in a line
EXAMPLE: Final = '{"orderId": 7}'


CheckWorkspace = Callable[[str], None]


class BadLine(BadEvent):
    """One line is no event; the lines before it are published."""

    def __init__(self, line: int, field: str, reason: str) -> None:
        """Keep the line's number, and the field that is at fault."""
        self.line = line
        super().__init__(f"line {line}: {field}", reason)


def trust(workspace_id: str) -> None:
    """Take every workspace for one that exists."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How many events are on the stream, and the line to go on from."""

    published: int = 0
    next_line: int = 1


def publish_lines(
    publisher: Publisher, lines: Iterable[str], workspace_id: str, check: CheckWorkspace = trust
) -> Iterator[Progress]:
    """Publish the events of `lines` in sets, and say after each set how far it is.

    Events that name no workspace go to `workspace_id`; `check` raises NotFound for one that does not exist.
    Empty lines are passed over. Raises BadLine with the number of the first bad line once those before it are
    published, PublishError if Redis does not confirm.
    """
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    sent = 0
    while batch := list(islice(numbered, PIPELINE_SIZE)):
        drafts, fault = _drafts(batch, workspace_id, check)
        publisher.publish_many(drafts)
        sent += len(drafts)
        yield Progress(sent, batch[-1][0] + 1 if fault is None else fault.line)
        if fault is not None:
            raise fault


def read_event(fields: Mapping[str, Any], workspace_id: str) -> EventDraft:
    """Make a draft of one event's fields. Raises BadEvent with the field at fault, as the engine would."""
    if unknown := fields.keys() - FIELDS:
        raise BadEvent(min(unknown), f"is unknown; known are {', '.join(sorted(FIELDS))}")
    texts = {name: fields.get(name) for name in ("type", "workspaceId", "id", "source", "occurredAt")}
    for name, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise BadEvent(name, "must be text")
    draft = EventDraft(
        type=texts["type"] or "",
        workspace_id=workspace_id if texts["workspaceId"] is None else texts["workspaceId"],
        payload=fields.get("payload", {}),
        id=texts["id"] or new_id(),
        occurred_at=_instant(texts["occurredAt"]),
        source=texts["source"],
    )
    _check(draft, texts["occurredAt"])
    return draft


def read_payload(text: str) -> Mapping[str, Any]:
    """Read what a person typed as a payload, as strictly as the engine. Raises ConfigError."""
    try:
        return _object("--payload", text)
    except BadEvent as error:
        raise ConfigError(f"{error}; write it like {EXAMPLE}") from error


def _drafts(
    batch: Iterable[tuple[int, str]], workspace_id: str, check: CheckWorkspace
) -> tuple[list[EventDraft], BadLine | None]:
    drafts: list[EventDraft] = []
    for number, line in batch:
        try:
            draft = read_event(_object("event", line, SPARE), workspace_id)
            check(draft.workspace_id)
        except BadEvent as error:
            return drafts, BadLine(number, error.field, error.reason)
        except NotFound as error:
            return drafts, BadLine(number, "workspaceId", str(error))
        drafts.append(draft)
    return drafts, None


def _object(field: str, text: str, spare: int = 0) -> dict[str, Any]:
    """Read an object as the engine does, but refuse a lone surrogate, which it would have to mend."""
    raw = text.encode(errors="surrogatepass")
    found = read_object(field, raw, spare=spare)
    if not found.sanitized:
        return found.value
    try:
        unmended: dict[str, Any] = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadEvent(field, "holds a lone surrogate, which is no text") from error
    return unmended


def _instant(text: str | None) -> datetime | None:
    try:
        return parse_instant(text) if text else None
    except ValueError as error:
        raise BadEvent("occurredAt", str(error)) from error


def _check(draft: EventDraft, occurred_at: str | None) -> None:
    """Raise BadEvent for what the engine would refuse at its door."""
    given = {
        "type": draft.type,
        "workspaceId": draft.workspace_id,
        "payload": orjson.dumps(draft.payload).decode(),
        "id": draft.id,
        "source": draft.source,
        "occurredAt": occurred_at,
    }
    if draft.type == RESERVED_TYPE:
        raise BadEvent("type", RESERVED_REASON)
    decode_entry(
        PLACE, {name.encode(): value.encode(errors="surrogatepass") for name, value in given.items() if value}
    )
