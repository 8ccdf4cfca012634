"""The automations that events are held against, in memory, so that an event costs what it matches.

Each automation stands on the shelves that its trigger names: workspace, trigger type, resource (a database,
an event type or its beginning, `*` for any) and property. An event looks only at the shelves of its own.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from shared.model.automation import Automation
from shared.model.events import Event
from shared.model.statuses import AutomationStatus
from shared.model.triggers import (
    ANY_PROPERTY,
    DATABASE_TRIGGERS,
    EVENTLESS_TRIGGERS,
    WILDCARD,
    TriggerType,
)
from shared.rules.triggering import FED_BY, changed_properties, database_of

Shelf = tuple[str, TriggerType, str, str]


@dataclass(frozen=True, slots=True)
class Survey:
    """What the index has for an event: `candidates` by age; `active` counts what the filters choose from."""

    candidates: tuple[Automation, ...]
    active: int


class Index:
    """ACTIVE and PAUSED automations by what starts them. One thread uses it."""

    def __init__(self) -> None:
        """Start empty."""
        self._held: dict[str, Automation] = {}
        self._shelves: defaultdict[Shelf, dict[str, Automation]] = defaultdict(dict)
        self._active: Counter[tuple[str, TriggerType]] = Counter()
        self._wild: Counter[str] = Counter()

    def __len__(self) -> int:
        """Count the automations."""
        return len(self._held)

    def put(self, automation: Automation) -> None:
        """Take an automation in, in the place of what was known of it."""
        self.drop(automation.id)
        if automation.definition.trigger.type in EVENTLESS_TRIGGERS:
            return
        self._held[automation.id] = automation
        for shelf in _shelves_of(automation):
            self._shelves[shelf][automation.id] = automation
        self._count(automation, 1)

    def drop(self, automation_id: str) -> None:
        """Take an automation out, if it is in."""
        known = self._held.pop(automation_id, None)
        if known is None:
            return
        for shelf in _shelves_of(known):
            del self._shelves[shelf][automation_id]
            if not self._shelves[shelf]:
                del self._shelves[shelf]
        self._count(known, -1)

    def hears(self, workspace_id: str, event_type: str) -> bool:
        """Tell whether a workspace may have an automation for an event type that feeds EVENT alone."""
        shelf = (workspace_id, TriggerType.EVENT, event_type, ANY_PROPERTY)
        return shelf in self._shelves or self._wild[workspace_id] > 0

    def survey(self, event: Event) -> Survey:
        """Find the automations whose trigger, scope and properties fit the event, and count all active ones.

        `active` takes in every active automation of the event's trigger types; of EVENT only those that
        cover its type, since another event type is no filter.
        """
        found: dict[str, Automation] = {}
        for shelf in self._shelves_for(event):
            found.update(self._shelves.get(shelf, {}))
        candidates = sorted(found.values(), key=lambda each: (each.created_at, each.id))
        active = sum(self._active[event.workspace_id, fed] for fed in FED_BY.get(event.type, ()))
        active += sum(
            each.definition.trigger.type is TriggerType.EVENT and _is_active(each) for each in candidates
        )
        return Survey(tuple(candidates), active)

    def _count(self, automation: Automation, by: int) -> None:
        trigger = automation.definition.trigger
        if _is_active(automation):
            self._active[automation.workspace_id, trigger.type] += by
        if (trigger.config.event_type or "").endswith(WILDCARD):
            self._wild[automation.workspace_id] += by

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


def _is_active(automation: Automation) -> bool:
    return automation.definition.status is AutomationStatus.ACTIVE
