"""What may start an automation: the trigger types, and which settings each of them takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import Field, StringConstraints, field_validator, model_validator

from shared.errors import BadEvent, Fault
from shared.model.event_fields import read_type
from shared.model.parts import Part, counted
from shared.model.refusals import Refused
from shared.time.cron import cron_check
from shared.time.wallclock import check_zone

DEFAULT_ZONE: Final = "UTC"
ANY_PROPERTY: Final = "*"
WILDCARD: Final = "*"
_PROPERTIES_MAX: Final = 200

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class TriggerType(StrEnum):
    """What starts a run."""

    RECORD_CREATED = "RECORD_CREATED"
    RECORD_UPDATED = "RECORD_UPDATED"
    PROPERTY_CHANGED = "PROPERTY_CHANGED"
    FORM_SUBMITTED = "FORM_SUBMITTED"
    PAGE_CREATED = "PAGE_CREATED"
    CONVERSATION_CREATED = "CONVERSATION_CREATED"
    CONVERSATION_UPDATED = "CONVERSATION_UPDATED"
    CONVERSATION_OPENED = "CONVERSATION_OPENED"
    CONVERSATION_RESOLVED = "CONVERSATION_RESOLVED"
    MESSAGE_CREATED = "MESSAGE_CREATED"
    CONTACT_UPDATED = "CONTACT_UPDATED"
    EVENT = "EVENT"
    SCHEDULE = "SCHEDULE"
    MANUAL = "MANUAL"


DATABASE_TRIGGERS: Final = frozenset(
    {
        TriggerType.RECORD_CREATED,
        TriggerType.RECORD_UPDATED,
        TriggerType.PROPERTY_CHANGED,
        TriggerType.FORM_SUBMITTED,
    }
)
MESSAGE_TRIGGERS: Final = frozenset({TriggerType.MESSAGE_CREATED, TriggerType.EVENT})
EVENTLESS_TRIGGERS: Final = frozenset({TriggerType.SCHEDULE, TriggerType.MANUAL})


class TriggerConfig(Part):
    """The settings of a trigger; each type takes some of them (`TAKES`)."""

    database_id: Name | None = Field(default=None, alias="databaseId")
    properties: Annotated[tuple[Name, ...] | None, counted(1, _PROPERTIES_MAX)] = None
    event_type: str | None = Field(default=None, alias="eventType")
    cron: str | None = None
    timezone: str | None = None

    @field_validator("event_type")
    @classmethod
    def _check_event_type(cls, event_type: str | None) -> str | None:
        if event_type is not None:
            check_event_pattern(event_type)
        return event_type

    @field_validator("cron")
    @classmethod
    def _check_cron(cls, cron: str | None) -> str | None:
        if cron is not None:
            cron_check(cron)
        return cron

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, timezone: str | None) -> str | None:
        if timezone is not None:
            check_zone(timezone)
        return timezone

    @property
    def zone(self) -> str:
        """The zone that `cron` is read in."""
        return self.timezone or DEFAULT_ZONE


@dataclass(frozen=True, slots=True)
class Settings:
    """Which keys of the config a trigger type needs, and which it may have besides."""

    needed: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


TAKES: Final[Mapping[TriggerType, Settings]] = MappingProxyType(
    {
        TriggerType.RECORD_CREATED: Settings(allowed=("databaseId",)),
        TriggerType.RECORD_UPDATED: Settings(allowed=("databaseId",)),
        TriggerType.PROPERTY_CHANGED: Settings(needed=("properties",), allowed=("databaseId",)),
        TriggerType.FORM_SUBMITTED: Settings(allowed=("databaseId",)),
        TriggerType.EVENT: Settings(needed=("eventType",)),
        TriggerType.SCHEDULE: Settings(needed=("cron",), allowed=("timezone",)),
    }
)
_TAKES_NOTHING: Final = Settings()


class Trigger(Part):
    """What starts the automation."""

    type: TriggerType
    config: TriggerConfig = TriggerConfig()

    @model_validator(mode="after")
    def _check_settings(self) -> "Trigger":
        takes = TAKES.get(self.type, _TAKES_NOTHING)
        settings = self.config.model_dump(by_alias=True)
        given = [key for key, value in settings.items() if value is not None]
        faults = [
            Fault(f"config.{key}", f"is required by {self.type}") for key in takes.needed if key not in given
        ]
        surplus = [key for key in given if key not in (*takes.needed, *takes.allowed)]
        faults += [Fault(f"config.{key}", f"does not go with {self.type}") for key in surplus]
        if faults:
            raise Refused(faults)
        return self


def check_event_pattern(text: str) -> None:
    """Raise ValueError unless `text` is an event type, or the beginning of one and a `*`."""
    stem = text.removesuffix(WILDCARD)
    tries = (text,) if stem == text else (f"{stem}x", f"{stem}x.x")
    if not any(_is_event_type(each) for each in tries):
        raise ValueError("must be noun.verb in lower case, or the beginning of one with * at its end")


def _is_event_type(text: str) -> bool:
    try:
        read_type({b"type": text.encode()})
    except BadEvent:
        return False
    return True
