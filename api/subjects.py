"""Subjects: what is known of them, read and written by other services. Each change is told of by an event."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Self
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from api.auth import needs
from api.errors import refused_at
from api.served import Served
from shared.errors import BadEvent
from shared.model.subjects import SubjectRef, SubjectRow, data
from shared.services.backends import Caller
from shared.services.subjects import SubjectFields, delete_subject, get_subject, put_subject
from shared.services.workspaces import Scope

TYPE_CHARS_MAX: Final = 100
ID_CHARS_MAX: Final = 200

router: Final = APIRouter(tags=["subjects"])

Reader = Annotated[Caller, needs(Scope.SUBJECTS_READ)]
Writer = Annotated[Caller, needs(Scope.SUBJECTS_WRITE)]
Type = Annotated[str, Path(alias="subject_type", examples=["contact"])]
Id = Annotated[str, Path(alias="subject_id", examples=["c-17"])]
Most = tuple[str, int]
TYPE: Final[Most] = ("subject_type", TYPE_CHARS_MAX)
ID: Final[Most] = ("subject_id", ID_CHARS_MAX)


class SubjectOut(BaseModel):
    """A subject, with the newest value of each field."""

    type: str
    id: str
    data: Mapping[str, Any]
    databaseId: str | None = Field(description="The database of a record.")  # noqa: N815 - as events name it

    @classmethod
    def of(cls, row: SubjectRow) -> Self:
        """Show a subject."""
        return cls(type=row.type, id=row.id, data=data(row), databaseId=row.database_id)


class SeenOut(SubjectOut):
    """A subject as it is read."""

    waiting_since: datetime | None = Field(
        description="Of a conversation: when the first message came that nobody has answered."
    )


class WrittenOut(SubjectOut):
    """A subject after a write: which fields it changed, and the event that tells of them, if any."""

    changed: list[str]
    event_id: str | None


class SubjectIn(BaseModel):
    """Fields to be laid into a subject; those that are left out stay as they are."""

    model_config = ConfigDict(extra="forbid")

    data: dict[str, Any] = Field(examples=[{"name": "Ada", "plan": "pro"}])
    databaseId: str | None = Field(  # noqa: N815 - as events name it
        default=None, min_length=1, max_length=ID_CHARS_MAX, description="The database of a record."
    )


class GoneOut(BaseModel):
    """The event that tells that a subject was deleted."""

    event_id: str


async def read_which(request: Request, _subject_type: Type, _subject_id: Id) -> SubjectRef:
    """Read which subject is meant, from the path as it was sent: a slash in an id is written %2F there.

    Raises Refused, and HTTPException, 404, for a path with more parts.
    """
    parts = [unquote(part) for part in request.scope["raw_path"].decode("latin-1").split("/")]
    match parts:
        case ["", "v1", "subjects", type_, id_]:
            return SubjectRef(_read(type_, TYPE), _read(id_, ID))
        case _:
            raise HTTPException(404)


def _read(text: str, most: Most) -> str:
    name, chars = most
    if not 1 <= len(text) <= chars:
        raise refused_at(name, f"must have 1 to {chars} characters")
    return text


Which = Annotated[SubjectRef, Depends(read_which)]


@router.get("/v1/subjects/{subject_type}/{subject_id:path}")
def read_one(caller: Reader, backends: Served, which: Which) -> SeenOut:
    """Show a subject."""
    seen = get_subject(backends.database, caller, which.type, which.id)
    return SeenOut(**SubjectOut.of(seen.row).model_dump(), waiting_since=seen.waiting_since)


@router.put(
    "/v1/subjects/{subject_type}/{subject_id:path}",
    responses={201: {"model": WrittenOut, "description": "The subject was made."}},
)
def write_one(
    caller: Writer, backends: Served, which: Which, wanted: SubjectIn, response: Response
) -> WrittenOut:
    """Lay fields into a subject, which is made if it is not there."""
    fields = SubjectFields(which.type, which.id, wanted.data, wanted.databaseId)
    try:
        done = put_subject(backends, caller, fields)
    except BadEvent as error:
        name = "subject_type" if error.field == "type" else error.field
        raise BadEvent(name, error.reason) from error
    response.status_code = 201 if done.was_made else 200
    shown = SubjectOut.of(done.row)
    return WrittenOut(**shown.model_dump(), changed=list(done.changed), event_id=done.event_id)


@router.delete("/v1/subjects/{subject_type}/{subject_id:path}")
def delete_one(caller: Writer, backends: Served, which: Which) -> GoneOut:
    """Delete a subject, until it is written again."""
    return GoneOut(event_id=delete_subject(backends, caller, which.type, which.id))
