"""What the actions on records, pages and comments take."""

from typing import Annotated, ClassVar

from pydantic import Field, JsonValue, StrictBool, model_validator

from shared.model.action_config import Filled, Given, Id, LocalConfig, Properties, SubjectRef


class UpdateRecord(LocalConfig):
    """Set fields of a record: the event's own, the one named by `record_id`, or another kind of `subject`.

    Fields that somebody else changed after the event are left alone unless `force`.
    """

    template_free: ClassVar[frozenset[str]] = frozenset({"force"})

    properties: Properties = Field(min_length=1)
    record_id: Annotated[Id | None, Given] = None
    subject: Annotated[SubjectRef | None, Given] = None
    force: StrictBool = False

    @model_validator(mode="after")
    def _check_target(self) -> "UpdateRecord":
        _check_one_target(self.record_id, self.subject)
        return self


class CreateRecord(LocalConfig):
    """Make a record in a database. Without `record_id` a repeat of the same action still makes one record."""

    database_id: Id
    properties: Properties = Field(default={})
    record_id: Annotated[Id | None, Given] = None


class CreatePage(LocalConfig):
    """Make a page. Without `page_id` a repeat of the same action still makes one page."""

    title: Filled
    content: JsonValue = None
    properties: Annotated[Properties | None, Given] = None
    page_id: Annotated[Id | None, Given] = None
    parent_id: Annotated[Id | None, Given] = None


class AddComment(LocalConfig):
    """Say something about a record or another kind of subject: by default what the event is about."""

    body: Filled
    record_id: Annotated[Id | None, Given] = None
    subject: Annotated[SubjectRef | None, Given] = None
    author: Annotated[Filled | None, Given] = None

    @model_validator(mode="after")
    def _check_target(self) -> "AddComment":
        _check_one_target(self.record_id, self.subject)
        return self


def _check_one_target(record_id: str | None, subject: SubjectRef | None) -> None:
    if record_id is not None and subject is not None:
        raise ValueError("give record_id or subject, not both")
