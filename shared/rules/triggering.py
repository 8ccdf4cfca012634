"""Which events start an automation, check by check (docs/automations.md, "Triggers"). Pure.

The matcher asks for the first check that says no; explain and dry run ask each of them.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from shared.model.automation import Automation, Definition
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


def first_mismatch(event: Event, automation: Automation) -> Mismatch | None:
    """Name the first check that keeps `event` from starting `automation`; None if it starts it."""
    return next((why for why, passes in CHECKS if not passes(event, automation)), None)


def named_by(event: Event, automation: Automation) -> Mismatch | None:
    """Name the first check that keeps `event` from arming a delayed automation; None if it arms it.

    What is made has just become what it is: `<noun>.created` arms what listens to `<noun>.updated` too.
    """
    return next((why for why, passes in _NAMING_CHECKS if not passes(event, automation)), None)


def is_of_workspace(event: Event, automation: Automation) -> bool:
    """Tell whether event and automation belong together."""
    return event.workspace_id == automation.workspace_id


def is_active(_event: Event, automation: Automation) -> bool:
    """Tell whether the automation is ACTIVE, and has been made so at a known moment."""
    return automation.definition.status is AutomationStatus.ACTIVE and automation.activated_ms is not None


def is_late_enough(event: Event, automation: Automation) -> bool:
    """Tell whether the event's entry is no older than the moment when the automation became active."""
    return automation.activated_ms is None or event.stamp[0] >= automation.activated_ms


def feeds(event: Event, automation: Automation) -> bool:
    """Tell whether events of this type feed the automation's trigger."""
    return covers(automation.definition.trigger, event.type)


def is_in_scope(event: Event, automation: Automation) -> bool:
    """Tell whether the event is of the automation's database, if that names one."""
    return has_in_scope(automation, database_of(event))


def has_in_scope(automation: Automation, database_id: str | None) -> bool:
    """Tell whether what is of this database, or of none, is what the automation is about."""
    wanted = automation.definition.scope_database_id
    is_about_databases = automation.definition.trigger.type in DATABASE_TRIGGERS
    return not is_about_databases or wanted is None or wanted == database_id


def is_watched(event: Event, automation: Automation) -> bool:
    """Tell whether one of the properties that the trigger names has changed; other triggers name none."""
    trigger = automation.definition.trigger
    if trigger.type is not TriggerType.PROPERTY_CHANGED:
        return True
    changed = changed_properties(event)
    watched = trigger.config.properties or ()
    return bool(changed) and (ANY_PROPERTY in watched or not changed.isdisjoint(watched))


def is_from_a_person(event: Event, _automation: Automation) -> bool:
    """Tell whether the event is no incoming message that a machine made."""
    return not is_machine_made(event)


CHECKS: Final[tuple[tuple[Mismatch, Callable[[Event, Automation], bool]], ...]] = (
    (Mismatch.OTHER_WORKSPACE, is_of_workspace),
    (Mismatch.INACTIVE, is_active),
    (Mismatch.BEFORE_ACTIVATION, is_late_enough),
    (Mismatch.OTHER_TYPE, feeds),
    (Mismatch.FILTER_MISMATCH, is_in_scope),
    (Mismatch.FILTER_MISMATCH, is_watched),
    (Mismatch.FILTER_MISMATCH, is_from_a_person),
)


def may_name(event: Event, automation: Automation) -> bool:
    """Tell whether events of this type arm an automation that waits: its trigger's, and `created`."""
    if feeds(event, automation):
        return True
    trigger = automation.definition.trigger
    noun, _, verb = event.type.rpartition(".")
    if verb != "created" or trigger.type is TriggerType.PROPERTY_CHANGED:
        return False
    return covers(trigger, f"{noun}.updated")


_NAMING_CHECKS: Final = tuple((why, may_name if passes is feeds else passes) for why, passes in CHECKS)


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


def is_delayed(definition: Definition) -> bool:
    """Tell whether the automation waits before it acts; the events that it names only arm it then."""
    return definition.execution_delay is not None
