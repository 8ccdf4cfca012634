"""Automations by what starts them, so that an event looks only at the shelves of its own.

Each stands on the shelves that its trigger names: workspace, trigger type, resource (a database, an event
type or its beginning, `*` for any) and property.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from shared.model.automation import Automation
from shared.model.events import Event
from shared.model.triggers import ANY_PROPERTY, DATABASE_TRIGGERS, WILDCARD, TriggerType
from shared.rules.triggering import FED_BY, changed_properties, database_of

Shelf = tuple[str, TriggerType, str, str]


class Shelves:
    """A set of automations. One thread uses it."""

    def __init__(self) -> None:
        """Start empty."""
        self._shelves: defaultdict[Shelf, dict[str, Automation]] = defaultdict(dict)
        self._wild: Counter[str] = Counter()

    def put(self, automation: Automation) -> None:
        """Take in an automation that is not in."""
        for shelf in _shelves_of(automation):
            self._shelves[shelf][automation.id] = automation
        self._wild[automation.workspace_id] += _is_wild(automation)

    def drop(self, automation: Automation) -> None:
        """Take out an automation that is in, as it was put."""
        for shelf in _shelves_of(automation):
            del self._shelves[shelf][automation.id]
            if not self._shelves[shelf]:
                del self._shelves[shelf]
        self._wild[automation.workspace_id] -= _is_wild(automation)

    def hears(self, workspace_id: str, event_type: str) -> bool:
        """Tell whether a workspace may have an automation for an event type that feeds EVENT alone."""
        shelf = (workspace_id, TriggerType.EVENT, event_type, ANY_PROPERTY)
        return shelf in self._shelves or self._wild[workspace_id] > 0

    def find(self, event: Event) -> dict[str, Automation]:
        """Give the automations whose trigger, scope and properties fit the event, by id."""
        found: dict[str, Automation] = {}
        for shelf in self._shelves_for(event):
            found.update(self._shelves.get(shelf, {}))
        return found

    def _shelves_for(self, event: Event) -> Iterator[Shelf]:
        workspace_id = event.workspace_id
        for fed in FED_BY.get(event.type, ()):
            resources = {WILDCARD, database_of(event) or WILDCARD} if fed in DATABASE_TRIGGERS else {WILDCARD}
            for resource in resources:
                for name in _properties_for(fed, event):
                    yield workspace_id, fed, resource, name
        yield workspace_id, TriggerType.EVENT, event.type, ANY_PROPERTY
        if self._wild[workspace_id]:
            for length in range(len(event.type) + 1):
                yield workspace_id, TriggerType.EVENT, event.type[:length] + WILDCARD, ANY_PROPERTY


def _properties_for(fed: TriggerType, event: Event) -> frozenset[str]:
    if fed is not TriggerType.PROPERTY_CHANGED:
        return frozenset({ANY_PROPERTY})
    changed = changed_properties(event)
    return changed | {ANY_PROPERTY} if changed else changed


def _shelves_of(automation: Automation) -> list[Shelf]:
    trigger = automation.definition.trigger
    resource = automation.definition.scope_database_id or trigger.config.event_type or WILDCARD
    names = trigger.config.properties or (ANY_PROPERTY,)
    return [(automation.workspace_id, trigger.type, resource, name) for name in dict.fromkeys(names)]


def _is_wild(automation: Automation) -> bool:
    return (automation.definition.trigger.config.event_type or "").endswith(WILDCARD)
