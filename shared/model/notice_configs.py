"""What CREATE_NOTIFICATION and EMIT_EVENT take."""

from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from shared.errors import BadEvent
from shared.model.action_config import Filled, LocalConfig, Properties
from shared.model.event_fields import read_type
from shared.model.executed import EXECUTED
from shared.model.parts import Text, counted
from shared.model.roles import Role


class CreateNotification(LocalConfig):
    """Put a notice into the inbox of every member who has one of the roles."""

    title: Filled
    body: Text = ""
    roles: Annotated[tuple[Role, ...], counted(1, len(Role))] = (Role.OWNER, Role.ADMIN)


class EmitEvent(LocalConfig):
    """Publish an event of one's own (`order.reviewed`), one step deeper in the chain than its trigger."""

    template_free: ClassVar[frozenset[str]] = frozenset({"event_type"})

    event_type: str
    payload: Properties = Field(default={})

    @field_validator("event_type")
    @classmethod
    def _check_event_type(cls, event_type: str) -> str:
        try:
            read_type({b"type": event_type.encode()})
        except BadEvent as error:
            raise ValueError(error.reason) from error
        if event_type == EXECUTED:
            raise ValueError("only the engine itself emits this event")
        return event_type
