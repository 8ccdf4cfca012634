"""What the actions on conversations take. Each is about the event's conversation unless it names another."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictInt,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from shared.model.action_config import ID_MAX, Filled, Given, Id, LocalConfig, is_final
from shared.model.event_fields import parse_instant
from shared.model.parts import Text, counted

LABELS_MAX: Final = 50
SNOOZE_MINUTES_MAX: Final = 525_600


class ConversationStatus(StrEnum):
    """How a conversation stands."""

    OPEN = "open"
    PENDING = "pending"
    RESOLVED = "resolved"
    SNOOZED = "snoozed"


Label = Annotated[Filled, StringConstraints(max_length=ID_MAX)]
Labels = Annotated[tuple[Label, ...], counted(1, LABELS_MAX)]


class ConversationConfig(LocalConfig):
    """An action on a conversation."""

    conversation_id: Annotated[Id | None, Given] = None


class AddLabel(ConversationConfig):
    """Put labels onto a conversation, beside those that it has."""

    labels: Labels


class RemoveLabel(ConversationConfig):
    """Take labels off a conversation."""

    labels: Labels


class SendMessage(ConversationConfig):
    """Say something in a conversation; what is `private` is a note that the contact does not see."""

    template_free: ClassVar[frozenset[str]] = frozenset({"private"})

    content: Filled
    private: StrictBool = False


class Assign(ConversationConfig):
    """Give a conversation to an agent, a team, or both; a null that is written takes it away from them."""

    null_written: ClassVar[frozenset[str]] = frozenset({"assignee_id", "team_id"})

    assignee_id: Id | None = None
    team_id: Id | None = None
    message: Annotated[Filled | None, Given] = None

    @model_validator(mode="after")
    def _check_somebody(self) -> "Assign":
        if not self.model_fields_set & {"assignee_id", "team_id"}:
            raise ValueError("give assignee_id, team_id or both")
        return self


class RequestAssignment(Assign):
    """Ask whoever distributes conversations to choose; a step of an idle sequence does, no definition."""

    @model_validator(mode="after")
    def _check_somebody(self) -> "RequestAssignment":
        return self


class SetStatus(ConversationConfig):
    """Set the status of a conversation."""

    status: Text

    @field_validator("status")
    @classmethod
    def _check_status(cls, status: str, info: ValidationInfo) -> str:
        if is_final(status, info) and status not in list(ConversationStatus):
            raise ValueError(f"must be one of {', '.join(ConversationStatus)}")
        return status


def _check_instant(text: str, info: ValidationInfo) -> str:
    if is_final(text, info):
        parse_instant(text)
    return text


class Snooze(ConversationConfig):
    """Let a conversation rest until an instant, or for some minutes."""

    template_free: ClassVar[frozenset[str]] = frozenset({"minutes"})

    until: Annotated[Text | None, AfterValidator(_check_instant), Given] = None
    minutes: Annotated[StrictInt | None, Field(ge=1, le=SNOOZE_MINUTES_MAX)] = None

    @model_validator(mode="after")
    def _check_one_end(self) -> "Snooze":
        if (self.until is None) == (self.minutes is None):
            raise ValueError("give until or minutes, and not both")
        return self

    @property
    def ends_at(self) -> datetime | None:
        """The instant that `until` names, once it is rendered."""
        return None if self.until is None else parse_instant(self.until)


class Resolve(ConversationConfig):
    """Resolve a conversation, with a last message or without; `closed_reason` is kept with it."""

    message: Annotated[Filled | None, Given] = None
    closed_reason: Annotated[Text | None, Given] = None
