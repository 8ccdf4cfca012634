"""The delayed automations, in memory: which of them an event may name, and which wait for its subject."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from matcher.shelves import Shelves
from shared.model.automation import Automation
from shared.model.events import Event
from shared.model.messages import MESSAGE_CREATED
from shared.model.subjects import subject_of
from shared.rules.arming import subject_type_of
from shared.rules.episodes import Standing, compile_standing
from shared.rules.standing_scope import reads_at
from shared.rules.triggering import covers

ANY_TYPE: Final = "*"


@dataclass(frozen=True, slots=True)
class Delayed:
    """A delayed automation with its conditions read."""

    automation: Automation
    standing: Standing

    @property
    def id(self) -> str:
        """The automation's id."""
        return self.automation.id

    @property
    def hears_messages(self) -> bool:
        """Tell whether messages may name it."""
        return covers(self.automation.definition.trigger, MESSAGE_CREATED)

    def reads_event(self, subject_type: str) -> bool:
        """Tell whether its conditions read what only the event tells that armed it."""
        standing = self.standing
        return standing.reads_whole or any(not reads_at(path, subject_type) for path in standing.paths)


class DelayedIndex:
    """The delayed automations by what names them and by what they are about. One thread uses it."""

    def __init__(self) -> None:
        """Start empty."""
        self._held: dict[str, Delayed] = {}
        self._shelves = Shelves()
        self._about: defaultdict[str, dict[str, dict[str, Delayed]]] = defaultdict(dict)

    def put(self, automation: Automation) -> None:
        """Take in an automation that is not in."""
        delayed = Delayed(automation, compile_standing(automation.definition.conditions))
        self._held[automation.id] = delayed
        self._shelves.put(automation)
        subject_type = subject_type_of(automation) or ANY_TYPE
        self._about[automation.workspace_id].setdefault(subject_type, {})[automation.id] = delayed

    def drop(self, automation: Automation) -> None:
        """Take out an automation, if it is in."""
        if self._held.pop(automation.id, None) is None:
            return
        self._shelves.drop(automation)
        about = self._about[automation.workspace_id]
        subject_type = subject_type_of(automation) or ANY_TYPE
        del about[subject_type][automation.id]
        if not about[subject_type]:
            del about[subject_type]
        if not about:
            del self._about[automation.workspace_id]

    def hears(self, workspace_id: str, event_type: str) -> bool:
        """Tell whether a workspace may have one for an event type that feeds EVENT alone."""
        return self._shelves.hears(workspace_id, event_type)

    def named_by(self, event: Event) -> tuple[Delayed, ...]:
        """Give those whose trigger, scope and properties fit the event, by age.

        What is made has become what it is: it is looked for among what listens to updates too.
        """
        if event.workspace_id not in self._about:
            return ()
        found = self._shelves.find(event)
        noun, _, verb = event.type.rpartition(".")
        if verb == "created":
            found |= self._shelves.find(replace(event, type=f"{noun}.updated"))
        return _by_age(self._held[each] for each in found)

    def waiting_for(self, event: Event) -> tuple[Delayed, ...]:
        """Give those that may wait for the event's subject, by age."""
        about = self._about.get(event.workspace_id)
        subject = subject_of(event) if about else None
        if about is None or subject is None:
            return ()
        return _by_age([*about.get(subject.type, {}).values(), *about.get(ANY_TYPE, {}).values()])


def _by_age(found: Iterable[Delayed]) -> tuple[Delayed, ...]:
    return tuple(sorted(found, key=lambda each: (each.automation.created_at, each.id)))
