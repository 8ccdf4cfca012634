"""`POST /v1/events`: events from whoever speaks HTTP, as our own fields or as CloudEvents 1.0."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.datastructures import Headers

from api.auth import needs
from api.bodies import media_type
from api.errors import Refused
from api.events_schema import REQUEST
from api.served import Configured, RawBody, Served
from shared.db.idempotency import Claim
from shared.errors import BadEvent
from shared.ids import new_id
from shared.model.event_bodies import MOST, Item, read_data, read_items
from shared.model.published import SPEC_VERSION, Published, is_cloud_event, read_published
from shared.services.backends import Caller
from shared.services.publishing import publish_events
from shared.services.workspaces import Scope

router: Final = APIRouter(tags=["events"])

Writer = Annotated[Caller, needs(Scope.EVENTS_WRITE)]

CLOUD_EVENT: Final = "application/cloudevents+json"
CLOUD_EVENTS: Final = "application/cloudevents-batch+json"
JSON: Final = "application/json"
HEADER: Final = "ce-"


class Accepted(BaseModel):
    """An event that is on the stream."""

    entry_id: str = Field(description="Its place on the stream.", examples=["1767225600000-0"])
    id: str = Field(description="What it is known by: yours, else one that was made for it.")


class AcceptedEvents(BaseModel):
    """The events that were taken, in their order."""

    entries: list[Accepted] = Field(min_length=1, max_length=MOST)


@router.post(
    "/v1/events",
    status_code=202,
    openapi_extra={"requestBody": REQUEST},
)
def publish(
    request: Request, caller: Writer, backends: Served, settings: Configured, body: RawBody
) -> AcceptedEvents:
    """Put one event, or up to 500, on the stream: all of them or, if one is bad, none."""
    items = _items(request.headers, body)
    names = _default_ids(getattr(request.state, "claim", None), len(items))
    events = [
        read_published(item, caller.workspace_id, name) for item, name in zip(items, names, strict=True)
    ]
    entry_ids = publish_events(backends, events, settings.events_maxlen)
    return AcceptedEvents(entries=_accepted(events, entry_ids))


def _accepted(events: Sequence[Published], entry_ids: Sequence[str]) -> list[Accepted]:
    return [
        Accepted(entry_id=entry_id, id=event.id) for event, entry_id in zip(events, entry_ids, strict=True)
    ]


def _default_ids(claim: Claim | None, count: int) -> list[str]:
    """Name events that bring no id; under an Idempotency-Key each try of one request names them alike."""
    if claim is None:
        return [new_id() for _ in range(count)]
    told = f"{claim.api_key_id}\n{claim.key}\n{claim.fingerprint}\n{claim.begun_at.isoformat()}"
    root = sha256(told.encode()).hexdigest()[:32]
    return [f"{root}-{number}" for number in range(count)]


def _items(headers: Headers, body: bytes) -> list[Item]:
    """Cut the body into events, as its type says. Raises Refused, BadEvent."""
    if f"{HEADER}{SPEC_VERSION}" in headers:
        return [Item("", _binary(headers, body))]
    kind = media_type(headers)
    if kind not in (JSON, CLOUD_EVENT, CLOUD_EVENTS):
        raise Refused(415, f"send {JSON}, {CLOUD_EVENT} or {CLOUD_EVENTS}")
    items = _read(body)
    for item in items if kind != JSON else ():
        if not is_cloud_event(item.value):
            raise BadEvent(item.at(SPEC_VERSION), "is missing")
    if kind == CLOUD_EVENTS and not items[0].place:
        raise BadEvent("events", "must be a list")
    if kind == CLOUD_EVENT and items[0].place:
        raise BadEvent("event", f"must be one object; send a list as {CLOUD_EVENTS}")
    return items


def _read(body: bytes) -> list[Item]:
    try:
        return read_items(body)
    except ValueError as error:
        raise Refused(400, f"the body {error}") from error


def _binary(headers: Headers, body: bytes) -> dict[str, Any]:
    """Give the CloudEvent whose attributes are headers and whose body is its data."""
    given = {
        name.removeprefix(HEADER): unquote(value)
        for name, value in headers.items()
        if name.startswith(HEADER)
    }
    kind = {"datacontenttype": headers["Content-Type"]} if "Content-Type" in headers else {}
    if not body:
        return {**given, **kind}
    try:
        return {**given, **kind, "data": read_data(body)}
    except ValueError as error:
        raise Refused(400, f"the body {error}") from error
