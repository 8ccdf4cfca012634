"""The automations that events are held against, in memory, so that an event costs what it matches.

What acts at once stands on shelves of its own. What waits first is found twice: by what names it, as an event
that may arm it, and by its subject, since whatever changes that may end an episode.
"""

from collections import Counter
from dataclasses import dataclass

from matcher.delayed import Delayed, DelayedIndex
from matcher.shelves import Shelves
from shared.model.automation import Automation
from shared.model.events import Event
from shared.model.statuses import AutomationStatus
from shared.model.triggers import EVENTLESS_TRIGGERS, TriggerType
from shared.rules.triggering import FED_BY, is_delayed


@dataclass(frozen=True, slots=True)
class Survey:
    """What the index has for an event: `candidates` by age; `active` counts what the filters choose from.

    `delayed` are candidates too, which would not run at once; `active` has those that are no EVENT.
    """

    candidates: tuple[Automation, ...]
    delayed: tuple[Delayed, ...]
    active: int


class Index:
    """ACTIVE and PAUSED automations by what starts them. One thread uses it."""

    def __init__(self) -> None:
        """Start empty."""
        self._held: dict[str, Automation] = {}
        self._shelves = Shelves()
        self._delayed = DelayedIndex()
        self._active: Counter[tuple[str, TriggerType]] = Counter()

    def __len__(self) -> int:
        """Count the automations."""
        return len(self._held)

    def put(self, automation: Automation) -> None:
        """Take an automation in, in the place of what was known of it."""
        self.drop(automation.id)
        if automation.definition.trigger.type in EVENTLESS_TRIGGERS:
            return
        self._held[automation.id] = automation
        if is_delayed(automation.definition):
            self._delayed.put(automation)
        else:
            self._shelves.put(automation)
        self._count(automation, 1)

    def drop(self, automation_id: str) -> None:
        """Take an automation out, if it is in."""
        known = self._held.pop(automation_id, None)
        if known is None:
            return
        if is_delayed(known.definition):
            self._delayed.drop(known)
        else:
            self._shelves.drop(known)
        self._count(known, -1)

    def hears(self, workspace_id: str, event_type: str) -> bool:
        """Tell whether a workspace may have an automation for an event type that feeds EVENT alone."""
        return self._shelves.hears(workspace_id, event_type) or self._delayed.hears(workspace_id, event_type)

    def survey(self, event: Event) -> Survey:
        """Find the automations whose trigger, scope and properties fit the event, and count all active ones.

        `active` takes in every active automation of the event's trigger types; of EVENT only those that
        cover its type, since another event type is no filter.
        """
        found = self._shelves.find(event)
        candidates = sorted(found.values(), key=lambda each: (each.created_at, each.id))
        active = sum(self._active[event.workspace_id, fed] for fed in FED_BY.get(event.type, ()))
        active += sum(
            each.definition.trigger.type is TriggerType.EVENT and _is_active(each) for each in candidates
        )
        return Survey(tuple(candidates), self._delayed.named_by(event), active)

    def delayed_for(self, event: Event) -> tuple[Delayed, ...]:
        """Give the delayed automations that may wait for the event's subject, whatever they listen to."""
        return self._delayed.waiting_for(event)

    def _count(self, automation: Automation, by: int) -> None:
        if _is_active(automation):
            self._active[automation.workspace_id, automation.definition.trigger.type] += by


def _is_active(automation: Automation) -> bool:
    return automation.definition.status is AutomationStatus.ACTIVE
