"""What may start an automation: the trigger types, and which settings each of them takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import (
    Field,
    SerializeAsAny,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from shared.errors import BadEvent, Fault
from shared.model.event_fields import read_type
from shared.model.parts import Part, counted
from shared.model.refusals import Refused, faults_of, unknown
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
    config: SerializeAsAny[TriggerConfig] = TriggerConfig()

    @field_validator("config", mode="plain")
    @classmethod
    def _check_config(cls, given: object, info: ValidationInfo) -> TriggerConfig:
        faults: list[Fault] = []
        if isinstance(given, Mapping):
            keys = {field.alias or name for name, field in TriggerConfig.model_fields.items()}
            surplus = [key for key in given if key not in keys]
            takes = _taken_by(info.data.get("type"))
            faults = [Fault(str(key), _unknown_setting(key, takes)) for key in surplus]
            given = {key: value for key, value in given.items() if key in keys}
        try:
            config = TriggerConfig.model_validate(given)
        except ValidationError as error:
            raise Refused([*faults, *faults_of(error, TriggerConfig)]) from error
        if faults:
            raise Refused(faults)
        return config

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


def _taken_by(kind: TriggerType | None) -> list[str]:
    if kind is None:
        return [field.alias or name for name, field in TriggerConfig.model_fields.items()]
    takes = TAKES.get(kind, _TAKES_NOTHING)
    return [*takes.needed, *takes.allowed]


def _unknown_setting(key: object, taken: Sequence[str]) -> str:
    return unknown(key, taken) if taken else "is unknown; this trigger takes no settings"


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
