"""Which automations an event starts. Pure: the stream consumer reads, dedupes and writes around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from shared.model.automation import Automation
from shared.model.events import Event, id_text
from shared.model.messages import is_machine_made
from shared.model.statuses import AutomationStatus
from shared.model.triggers import ANY_PROPERTY, DATABASE_TRIGGERS, WILDCARD, Trigger, TriggerType

FED_BY: Final[Mapping[str, tuple[TriggerType, ...]]] = MappingProxyType(
    {
        "record.created": (TriggerType.RECORD_CREATED,),
        "record.updated": (TriggerType.RECORD_UPDATED, TriggerType.PROPERTY_CHANGED),
        "form.submitted": (TriggerType.FORM_SUBMITTED,),
        "page.created": (TriggerType.PAGE_CREATED,),
        "conversation.created": (TriggerType.CONVERSATION_CREATED,),
        "conversation.updated": (TriggerType.CONVERSATION_UPDATED,),
        "conversation.opened": (TriggerType.CONVERSATION_OPENED,),
        "conversation.resolved": (TriggerType.CONVERSATION_RESOLVED,),
        "message.created": (TriggerType.MESSAGE_CREATED,),
        "contact.updated": (TriggerType.CONTACT_UPDATED,),
    }
)


class Mismatch(StrEnum):
    """The first check that said no."""

    OTHER_WORKSPACE = "other_workspace"
    INACTIVE = "inactive"
    BEFORE_ACTIVATION = "before_activation"
    OTHER_TYPE = "other_type"
    FILTER_MISMATCH = "filter_mismatch"


@dataclass(frozen=True, slots=True)
class Match:
    """The event starts a run of the automation."""

    event: Event
    automation: Automation


@dataclass(frozen=True, slots=True)
class Skip:
    """The event starts no run of the automation."""

    automation_id: str
    reason: Mismatch


def match(event: Event, automation: Automation) -> Match | Skip:
    """Decide whether `event` starts a run of `automation`.

    Conditions, self-trigger and depth are decided when the run starts. A machine-made incoming message
    starts nothing.
    """
    trigger = automation.definition.trigger
    if event.workspace_id != automation.workspace_id:
        return Skip(automation.id, Mismatch.OTHER_WORKSPACE)
    if automation.definition.status is not AutomationStatus.ACTIVE or automation.activated_ms is None:
        return Skip(automation.id, Mismatch.INACTIVE)
    if event.stamp[0] < automation.activated_ms:
        return Skip(automation.id, Mismatch.BEFORE_ACTIVATION)
    if not covers(trigger, event.type):
        return Skip(automation.id, Mismatch.OTHER_TYPE)
    if not _is_in_scope(event, automation) or not _is_watched(event, trigger) or is_machine_made(event):
        return Skip(automation.id, Mismatch.FILTER_MISMATCH)
    return Match(event, automation)


def covers(trigger: Trigger, event_type: str) -> bool:
    """Tell whether events of this type feed the trigger."""
    if trigger.type is not TriggerType.EVENT:
        return trigger.type in FED_BY.get(event_type, ())
    pattern = trigger.config.event_type or ""
    if pattern.endswith(WILDCARD):
        return event_type.startswith(pattern.removesuffix(WILDCARD))
    return event_type == pattern


def database_of(event: Event) -> str | None:
    """Give the id of the database that the event names; a number counts as its digits."""
    return id_text(event.payload.get("databaseId"))


def changed_properties(event: Event) -> frozenset[str]:
    """Give the names of the properties that the event says it changed."""
    found = event.payload.get("changedProperties")
    return (
        frozenset(name for name in found if isinstance(name, str)) if isinstance(found, list) else frozenset()
    )


def _is_in_scope(event: Event, automation: Automation) -> bool:
    wanted = automation.definition.scope_database_id
    is_about_databases = automation.definition.trigger.type in DATABASE_TRIGGERS
    return not is_about_databases or wanted is None or wanted == database_of(event)


def _is_watched(event: Event, trigger: Trigger) -> bool:
    """Tell whether one of the properties that the trigger names has changed; other triggers name none."""
    if trigger.type is not TriggerType.PROPERTY_CHANGED:
        return True
    changed = changed_properties(event)
    watched = trigger.config.properties or ()
    return bool(changed) and (ANY_PROPERTY in watched or not changed.isdisjoint(watched))
